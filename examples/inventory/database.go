package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/internal/dbserver"
)

// A database is where the stock is, as every process of a run has to know it.
type database struct {
	Dialect fencing.Dialect
	DSN     string // a URL of PostgreSQL, a file of SQLite
	Schema  string // of the run, in PostgreSQL
}

// connections is how many of them a replica may have.
const connections = 10

// open opens it, and gives the count of waits for locks where the driver's side is where they are seen.
func (d database) open() (*sql.DB, *lockWaits, error) {
	if d.Dialect == fencing.SQLite {
		return openSQLite(d.DSN)
	}
	db, err := openPostgres(d.DSN, d.Schema)
	return db, &lockWaits{}, err
}

// findDatabase finds or starts the database of a run. what is the flag's text: a URL, "sqlite",
// "postgres", or nothing, which takes PostgreSQL where it can be started. The note says which it is.
func findDatabase(ctx context.Context, what, run string, start func() (*dbserver.Server, error)) (_ database, note string, end func(), err error) {
	var d database
	switch {
	case strings.HasPrefix(what, "postgres://"), strings.HasPrefix(what, "postgresql://"):
		d, end, err = usePostgres(ctx, what, run)
		return d, "PostgreSQL, in a schema of its own that is dropped at the end", end, err
	case what == "sqlite":
		d, end, err = useSQLite()
		return d, "SQLite, in a file of its own", end, err
	case what != "" && what != "postgres":
		return d, "", nil, errors.New("-database, or DATABASE_URL, is no postgres:// URL, nor postgres, nor sqlite; -database sqlite works everywhere")
	}
	server, err := start()
	if err != nil && what == "postgres" {
		return d, "", nil, err
	}
	if err != nil {
		why := "is not installed; install it"
		if !errors.Is(err, dbserver.ErrNotInstalled) {
			why = "did not start; see why by -database postgres"
		}
		d, end, err = useSQLite()
		return d, "SQLite, as PostgreSQL " + why + ", or give -database postgres://…, for a fuller picture", end, err
	}
	dsn := fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", server.User(), server.Addr(), server.Database())
	d, drop, err := usePostgres(ctx, dsn, run)
	if err != nil {
		server.Stop()
		return d, "", nil, err
	}
	return d, "PostgreSQL, started for this run", func() { drop(); server.Stop() }, nil
}

func useSQLite() (database, func(), error) {
	dir, err := os.MkdirTemp("", "inventory")
	if err != nil {
		return database{}, nil, err
	}
	end := func() { _ = os.RemoveAll(dir) } // what is left of it is in the directory for temporary files
	return database{Dialect: fencing.SQLite, DSN: filepath.Join(dir, "stock.db")}, end, nil
}
