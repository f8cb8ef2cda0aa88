package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/quorate/quorate/fencing"
)

// openPostgres opens a pool whose tables are those of the schema. Its name is also that of the
// connections, by which the lock waits of this run are found.
func openPostgres(dsn, schema string) (*sql.DB, error) {
	options, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("read the database's URL: %w", err)
	}
	options.RuntimeParams["search_path"] = schema
	options.RuntimeParams["application_name"] = schema
	db := stdlib.OpenDB(*options)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// usePostgres makes a schema for the run.
func usePostgres(ctx context.Context, dsn, run string) (_ database, end func(), err error) {
	d := database{Dialect: fencing.PostgreSQL, DSN: dsn, Schema: "inventory_example_" + run}
	db, err := openPostgres(dsn, d.Schema)
	if err != nil {
		return database{}, nil, err
	}
	if _, err := db.ExecContext(ctx, `CREATE SCHEMA `+d.Schema); err != nil {
		_ = db.Close() // it says nothing more
		return database{}, nil, fmt.Errorf("create a schema for the run: %w", err)
	}
	return d, func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if _, err := db.ExecContext(ctx, `DROP SCHEMA `+d.Schema+` CASCADE`); err != nil {
			fmt.Fprintln(os.Stderr, "inventory: the schema", d.Schema, "is left:", err)
		}
		_ = db.Close() // the process ends
	}, nil
}

// sampleEvery is how often PostgreSQL is asked who waits.
const sampleEvery = 10 * time.Millisecond

// sampleWaits counts, over and over until ctx ends, the sessions of the run that wait for a lock.
func sampleWaits(ctx context.Context, db *sql.DB, schema string, waits *lockWaits) error {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		var waiting int
		err := db.QueryRowContext(ctx, `SELECT count(*) FROM pg_stat_activity
			WHERE application_name = $1 AND wait_event_type = 'Lock'`, schema).Scan(&waiting)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("ask for lock waits: %w", err)
		}
		waits.sample(waiting)
	}
}
