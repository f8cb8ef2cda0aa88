package fencing

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/redlock"
)

// A SQLTable is a table of yours with a column more, which holds the token of each row's last
// write: for data of which one row is one resource. An update is then one statement, which carries its
// own check, and needs neither a fence table nor a transaction.
//
//	stock, err := fencing.NewSQLTable(fencing.PostgreSQL, "stock")
//	err = stock.Update(ctx, db, token, fencing.Columns{"sku": 42}, fencing.Columns{"qty": fencing.Add(-1)})
//
// What it does not guard: rows that are inserted, and rows that are deleted and with them their fence.
// It is safe for use by many goroutines and holds nothing that needs closing.
type SQLTable struct {
	dialect   Dialect
	table     string // quoted
	name      string // as given
	column    string // quoted
	fence     string // as given
	telemetry *gateTelemetry
}

// Columns are values by the names of their columns. The names are quoted, so they are those that the
// database keeps: PostgreSQL has what was not quoted in lower case.
type Columns map[string]any

// Add is a value for Update that is added to what the column holds; a negative one takes away.
type Add int64

// A DB is what an update is made with: a *sql.DB, *sql.Conn or *sql.Tx.
type DB interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// NewSQLTable makes the helper for a table, as table or schema.table. Of the options, WithColumn and
// WithMeterProvider count. The error wraps redlock.ErrInvalidOption.
func NewSQLTable(dialect Dialect, table string, opts ...SQLOption) (*SQLTable, error) {
	if err := dialect.check(); err != nil {
		return nil, err
	}
	s, err := newSQLSettings(opts)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(checkTable(table), checkIdentifier("column", s.column)); err != nil {
		return nil, fmt.Errorf("fencing: %w", err)
	}
	t, err := newGateTelemetry(s.meters, dialect.String())
	if err != nil {
		return nil, fmt.Errorf("fencing: create metrics: %w", err)
	}
	return &SQLTable{
		dialect: dialect, table: dialect.quoteTable(table), name: table,
		column: dialect.quote(s.column), fence: s.column, telemetry: t,
	}, nil
}

// DDL is the statement that adds the column to the table. Rows that are there begin with fence 0, which
// admits every token.
func (t *SQLTable) DDL() string {
	return "ALTER TABLE " + t.table + " ADD COLUMN " + t.column + " bigint DEFAULT 0 NOT NULL"
}

// Update sets columns of the row with this key, and its fence to the token, if no higher token has
// written to the row. The key must be that of one row.
//
// Errors: a *StaleError when a higher token has written; ErrNoRow; ErrTxConflict, see SQLGate.Admit;
// ErrDamagedFence where the row's fence is NULL; redlock.ErrInvalidOption and ErrInvalidToken; or
// the driver's. Only after a driver's error may the row have been changed. An error about a key with
// several rows comes after the fact: in a transaction, roll back.
func (t *SQLTable) Update(ctx context.Context, db DB, token redlock.Token, key, set Columns) error {
	if t.unmade() {
		return fmt.Errorf("fencing: update: %w", unmade("table", "NewSQLTable"))
	}
	if missingDB(db) {
		return fmt.Errorf("fencing: update %s: %w: the database is nil; give a *sql.DB, *sql.Conn or *sql.Tx", t.name, redlock.ErrInvalidOption)
	}
	query, args, err := t.Statement(token, key, set)
	if err != nil {
		return err
	}
	result, err := db.ExecContext(ctx, query, args...)
	var rows int64
	if err == nil {
		rows, err = result.RowsAffected()
	}
	switch {
	case errors.Is(err, sql.ErrTxDone):
		return fmt.Errorf("fencing: update %s: %w; call Update before Commit and Rollback, with a context that still lasts", t.name, err)
	case t.dialect.is(err, noColumns):
		return fmt.Errorf("fencing: update %s: %w; if that is the fence, add it: %s", t.name, err, t.DDL())
	case err != nil:
		return fmt.Errorf("fencing: update %s: %w", t.name, t.dialect.explain(ctx, err, t.name))
	case rows > 1:
		return fmt.Errorf("fencing: update %s: %w: %d rows have the key %s, so that some may be stale; roll back, and name the columns of the primary key",
			t.name, redlock.ErrInvalidOption, rows, key.names())
	case rows == 1:
		return nil
	}
	return t.untouched(ctx, db, token, key)
}

// untouched says why an update has found no row to change, by a second look. It may see a later state
// than the update did, which is why a fence that would admit the token is a conflict.
func (t *SQLTable) untouched(ctx context.Context, db DB, token redlock.Token, key Columns) error {
	where, args := t.where(nil, key)
	query := "SELECT " + t.column + " FROM " + t.table + " WHERE " + where
	if t.dialect == MySQL {
		query += " FOR UPDATE" // not from a snapshot, which the update did not look at either
	}
	var fence sql.NullInt64
	err := db.QueryRowContext(ctx, query, args...).Scan(&fence)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("fencing: update %s: %w with key %s; insert it first", t.name, ErrNoRow, key.names())
	case err != nil:
		return fmt.Errorf("fencing: update %s: look for the fence: %w", t.name, t.dialect.explain(ctx, err, t.name))
	case !fence.Valid:
		return fmt.Errorf("fencing: update %s: %w: column %s is NULL, which admits nobody; make it NOT NULL DEFAULT 0: %s", t.name, ErrDamagedFence, t.fence, t.DDL())
	case fence.Int64 > int64(token):
		t.telemetry.refused(ctx)
		return &StaleError{Resource: t.name + " " + key.values(), Token: token, Seen: redlock.Token(fence.Int64)}
	case t.dialect == MySQL && fence.Int64 == int64(token):
		return nil // the row was as it should become: MySQL counts only what is different now
	}
	return fmt.Errorf("fencing: update %s: %w: the row came, or its fence went back, in the meantime; run it again", t.name, ErrTxConflict)
}

// Statement is the statement of Update, and its arguments, for those who send it in a way of their
// own: in a batch, or by a driver without database/sql. When it changes no row, the token is stale, or
// there is no such row, or (MySQL, without clientFoundRows) the row is as it should be already.
func (t *SQLTable) Statement(token redlock.Token, key, set Columns) (query string, args []any, err error) {
	if t.unmade() {
		return "", nil, fmt.Errorf("fencing: update: %w", unmade("table", "NewSQLTable"))
	}
	if err := checkToken(token); err != nil {
		return "", nil, fmt.Errorf("fencing: update %s: %w", t.name, err)
	}
	if err := t.checkColumns(key, set); err != nil {
		return "", nil, fmt.Errorf("fencing: update %s: %w", t.name, err)
	}
	var b strings.Builder
	b.WriteString("UPDATE " + t.table + " SET ")
	for _, name := range slices.Sorted(maps.Keys(set)) {
		column, value := t.dialect.quote(name), set[name]
		b.WriteString(column + " = ")
		if by, ok := value.(Add); ok {
			b.WriteString(column + " + ")
			value = int64(by)
		}
		args = append(args, value)
		b.WriteString(t.dialect.placeholder(len(args)) + ", ")
	}
	args = append(args, int64(token))
	b.WriteString(t.column + " = " + t.dialect.placeholder(len(args)) + " WHERE ")
	where, args := t.where(args, key)
	args = append(args, int64(token))
	b.WriteString(where + " AND " + t.column + " <= " + t.dialect.placeholder(len(args)))
	return b.String(), args, nil
}

// unmade reports whether NewSQLTable did not make the table.
func (t *SQLTable) unmade() bool { return t == nil || t.telemetry == nil }

// where is the condition on the key, and the arguments with its values.
func (t *SQLTable) where(args []any, key Columns) (string, []any) {
	var conditions []string
	for _, name := range slices.Sorted(maps.Keys(key)) {
		args = append(args, key[name])
		conditions = append(conditions, t.dialect.quote(name)+" = "+t.dialect.placeholder(len(args)))
	}
	return strings.Join(conditions, " AND "), args
}

func (t *SQLTable) checkColumns(key, set Columns) error {
	switch {
	case len(key) == 0:
		return fmt.Errorf("%w: the key is empty, and would be that of every row", redlock.ErrInvalidOption)
	case len(set) == 0:
		return fmt.Errorf("%w: there are no columns to set", redlock.ErrInvalidOption)
	}
	for _, columns := range []Columns{key, set} {
		for name := range columns {
			if err := checkIdentifier("column", name); err != nil {
				return err
			}
			// In most databases an identifier is one whatever its letters' case.
			if strings.EqualFold(name, t.fence) {
				return fmt.Errorf("%w: column %q is the fence itself", redlock.ErrInvalidOption, name)
			}
		}
	}
	for name, value := range key {
		if _, ok := value.(Add); ok {
			return fmt.Errorf("%w: column %q of the key is an Add, which is for what is set", redlock.ErrInvalidOption, name)
		}
		if value == nil {
			return fmt.Errorf("%w: column %q of the key is nil, and NULL equals nothing", redlock.ErrInvalidOption, name)
		}
	}
	return nil
}

// names are the columns of a key.
func (c Columns) names() string {
	return strings.Join(slices.Sorted(maps.Keys(c)), ", ")
}

// values are the columns and what they hold, on one line and not for ever.
func (c Columns) values() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, fmt.Sprintf("%s=%.64q", name, fmt.Sprint(c[name])))
	}
	return strings.Join(parts, " ")
}

// missingDB reports whether there is no database behind the interface.
func missingDB(db DB) bool {
	switch d := db.(type) {
	case nil:
		return true
	case *sql.DB:
		return d == nil
	case *sql.Tx:
		return d == nil
	case *sql.Conn:
		return d == nil
	}
	return false
}
