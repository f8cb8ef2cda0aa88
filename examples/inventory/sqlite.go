package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"

	"modernc.org/sqlite"
)

// writers is how many connections a replica has. SQLite writes one transaction at a time, so more
// of them only wait.
const writers = 4

// openSQLite opens the file so that each transaction begins with the write lock (BEGIN IMMEDIATE), and
// counts how long that takes.
func openSQLite(file string) (*sql.DB, *lockWaits, error) {
	connector, err := sqlite.NewConnector("file:" + file +
		"?_txlock=immediate&_pragma=busy_timeout(20000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)")
	if err != nil {
		return nil, nil, fmt.Errorf("open SQLite: %w", err)
	}
	waits := &lockWaits{}
	db := sql.OpenDB(&countingConnector{Connector: connector, waits: waits})
	db.SetMaxOpenConns(writers)
	db.SetMaxIdleConns(writers)
	return db, waits, nil
}

// A countingConnector opens connections whose transactions are counted while they wait to begin.
type countingConnector struct {
	driver.Connector
	waits *lockWaits
}

func (c *countingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	full, ok := conn.(sqliteConn)
	if !ok {
		return nil, fmt.Errorf("a connection of SQLite is a %T, which cannot be counted", conn)
	}
	return &countingConn{sqliteConn: full, waits: c.waits}, nil
}

// A sqliteConn is what package sql makes use of in a connection of this driver.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

type countingConn struct {
	sqliteConn
	waits *lockWaits
}

func (c *countingConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	defer c.waits.begin()()
	return c.sqliteConn.BeginTx(ctx, opts)
}
