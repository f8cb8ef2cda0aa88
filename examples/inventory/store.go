package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

// patience is how long a write may take that has been begun.
const patience = 10 * time.Second

// A store keeps the stock of each product, and the orders.
type store struct {
	db      *sql.DB
	dialect fencing.Dialect
	gate    *fencing.SQLGate
}

func newStore(db *sql.DB, dialect fencing.Dialect) (*store, error) {
	gate, err := fencing.NewSQLGate(dialect)
	if err != nil {
		return nil, err
	}
	return &store{db: db, dialect: dialect, gate: gate}, nil
}

// create makes the tables anew, with so many units of one product.
func (s *store) create(ctx context.Context, sku string, units int) error {
	for _, statement := range []string{
		s.gate.DDL(), // the fences stay from sale to sale: tokens only grow
		`DROP TABLE IF EXISTS stock`,
		`DROP TABLE IF EXISTS orders`,
		`CREATE TABLE stock (sku text NOT NULL PRIMARY KEY, units bigint NOT NULL)`,
		`CREATE TABLE orders (sku text NOT NULL, units bigint NOT NULL, token bigint NOT NULL)`,
	} {
		if _, err := s.db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("create the tables: %w", err)
		}
	}
	if _, err := s.db.ExecContext(ctx, `INSERT INTO stock (sku, units) VALUES ($1, $2)`, sku, units); err != nil {
		return fmt.Errorf("fill the stock: %w", err)
	}
	return nil
}

// A querier is a *sql.DB or a *sql.Tx.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// left reads how many units there are.
func (s *store) left(ctx context.Context, q querier, sku string) (int, error) {
	return scanLeft(q.QueryRowContext(ctx, `SELECT units FROM stock WHERE sku = $1`, sku))
}

// lockAndRead does so with the row locked until the transaction ends. SQLite has no row locks: there
// a transaction locks the file when it begins.
func (s *store) lockAndRead(ctx context.Context, tx *sql.Tx, sku string) (int, error) {
	if s.dialect == fencing.SQLite {
		return s.left(ctx, tx, sku)
	}
	return scanLeft(tx.QueryRowContext(ctx, `SELECT units FROM stock WHERE sku = $1 FOR UPDATE`, sku))
}

func scanLeft(row *sql.Row) (left int, err error) {
	if err := row.Scan(&left); err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			return 0, errUnknown
		}
		return 0, fmt.Errorf("read the stock: %w", err)
	}
	return left, nil
}

// resource is the name under which a product is guarded.
func resource(sku string) string { return "stock:" + sku }

// saveGuarded writes like save, in a transaction that admits the token of the guarded section it is
// called in. It finds the token in its context, so nothing between the section and here has to pass it on;
// and outside of a section it refuses to write.
func (s *store) saveGuarded(ctx context.Context, sku string, left int, orders []int) error {
	token, ok := fencing.TokenFor(ctx, resource(sku))
	if !ok {
		return fmt.Errorf("%w for %s: sell within a guard", fencing.ErrNoToken, sku)
	}
	// The end of the lease does not cut the write off in the middle, which would leave open whether it
	// is there. It need not: the gate decides whether it comes too late.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	err := s.gate.InTx(ctx, s.db, nil, resource(sku), token, func(tx *sql.Tx) error {
		return s.save(ctx, tx, sku, left, orders, token)
	})
	if err == nil || errors.Is(err, fencing.ErrStaleToken) || errors.Is(err, fencing.ErrTxConflict) {
		return err
	}
	return fmt.Errorf("%w: %w", errUnsure, err) // the commit may have got through
}

// save writes what is left of a product, and the orders that have taken the rest: units of each.
func (s *store) save(ctx context.Context, q querier, sku string, left int, orders []int, token redlock.Token) error {
	if _, err := q.ExecContext(ctx, `UPDATE stock SET units = $1 WHERE sku = $2`, left, sku); err != nil {
		return fmt.Errorf("write the stock: %w", err)
	}
	for _, units := range orders {
		if _, err := q.ExecContext(ctx, `INSERT INTO orders (sku, units, token) VALUES ($1, $2, $3)`, sku, units, int64(token)); err != nil {
			return fmt.Errorf("write the order: %w", err)
		}
	}
	return nil
}

// inTx runs fn in a transaction without a token.
func (s *store) inTx(ctx context.Context, fn func(tx *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// ordered is how many units there are orders for.
func (s *store) ordered(ctx context.Context, sku string) (units int, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT COALESCE(SUM(units), 0) FROM orders WHERE sku = $1`, sku).Scan(&units)
	if err != nil {
		return 0, fmt.Errorf("count the orders: %w", err)
	}
	return units, nil
}
