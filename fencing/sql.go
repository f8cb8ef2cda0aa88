package fencing

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/quorate/quorate/redlock"
)

// A SQLGate is the gate for data in a database: a table with one row for each resource, which holds
// the highest token. A transaction that changes the data admits its token first, in the same
// transaction: that locks the row of the resource until the end, so that check and writes are one
// step, and those of another holder come before or after it as a whole.
//
//	tx, err := db.BeginTx(ctx, nil)
//	err = gate.Admit(ctx, tx, "sku:42", token)
//	_, err = tx.ExecContext(ctx, `UPDATE stock SET qty = qty - 1 WHERE sku = 42`)
//	err = tx.Commit()
//
// It is safe for use by many goroutines and holds nothing that needs closing; no driver is imported.
type SQLGate struct {
	dialect   Dialect
	table     string // quoted
	name      string // as given
	telemetry *gateTelemetry
}

// NewSQLGate makes a gate. The error wraps redlock.ErrInvalidOption. The table is not created: DDL
// says how.
func NewSQLGate(dialect Dialect, opts ...SQLOption) (*SQLGate, error) {
	if err := dialect.check(); err != nil {
		return nil, err
	}
	s, err := newSQLSettings(opts)
	if err != nil {
		return nil, err
	}
	if err := checkTable(s.table); err != nil {
		return nil, fmt.Errorf("fencing: %w", err)
	}
	t, err := newGateTelemetry(s.meters, dialect.String())
	if err != nil {
		return nil, fmt.Errorf("fencing: create metrics: %w", err)
	}
	return &SQLGate{dialect: dialect, table: dialect.quoteTable(s.table), name: s.table, telemetry: t}, nil
}

// DDL is the statement that creates the fence table where it is missing. The resource is compared byte by
// byte: a database that takes "SKU" and "sku" for one, or "a" and "a ", would have holders of
// different resources shut each other out.
func (g *SQLGate) DDL() string {
	column, rest := "text", ""
	switch g.dialect {
	case PostgreSQL:
		column = `text COLLATE "C"`
	case MySQL:
		column, rest = "varbinary(512)", " ENGINE=InnoDB"
	}
	return "CREATE TABLE IF NOT EXISTS " + g.table + " (" +
		g.dialect.quote("resource") + " " + column + " NOT NULL PRIMARY KEY, " +
		g.dialect.quote("token") + " bigint NOT NULL)" + rest
}

// Admit lets the token pass if it is as high as the highest that the gate has seen for the
// resource, or higher, and shuts out all that are older from the moment that tx is committed.
// Until then the row of the resource is locked. If tx is rolled back, nothing has happened.
//
// Make it the first statement of the transaction: what was read before may be from before the
// writes of an older holder.
//
// Errors: a *StaleError when the gate has admitted a higher token: roll back. ErrTxConflict when the
// database undid the transaction because of others (a serialization failure, a deadlock, a busy file):
// it says nothing about the token, roll back and run the transaction again. ErrNoTable, sql.ErrTxDone,
// ErrInvalidToken, redlock.ErrInvalidName, or the driver's. After none of these was anything written.
func (g *SQLGate) Admit(ctx context.Context, tx *sql.Tx, resource string, token redlock.Token) error {
	switch {
	case g.unmade():
		return fmt.Errorf("fencing: admit %q: %w", resource, unmade("gate", "NewSQLGate"))
	case tx == nil:
		return fmt.Errorf("fencing: admit %q: %w: the transaction is nil; begin one with db.BeginTx", resource, redlock.ErrInvalidOption)
	}
	return g.admit(ctx, tx, resource, token)
}

// A querier is a *sql.Tx, or a *sql.DB, where each statement is a transaction.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func (g *SQLGate) admit(ctx context.Context, q querier, resource string, token redlock.Token) error {
	if err := checkTicket(resource, token); err != nil {
		return fmt.Errorf("fencing: admit %.512q: %w", resource, err) // it may be too long
	}
	if !utf8.ValidString(resource) || strings.Contains(resource, "\x00") {
		return fmt.Errorf("fencing: admit %q: %w: it is not UTF-8, or has a zero byte, which not every database stores", resource, redlock.ErrInvalidName)
	}
	seen, err := g.raise(ctx, q, resource, token)
	switch {
	case errors.Is(err, sql.ErrTxDone):
		return fmt.Errorf("fencing: admit %q: %w; call Admit before Commit and Rollback, with a context that still lasts", resource, err)
	case err != nil:
		return fmt.Errorf("fencing: admit %q: %w", resource, g.dialect.explain(ctx, err, g.DDL()))
	case seen > token:
		g.telemetry.refused(ctx)
		return &StaleError{Resource: resource, Token: token, Seen: seen}
	}
	return nil
}

// raise raises the fence to the token, unless it is higher, and returns what it is then. In every case
// a transaction has the row's lock. All statements look at the row as it is now, not as in a
// snapshot, or fail with a conflict where the isolation level forbids that. Where each statement is
// a transaction, another may raise the fence between the two: then the token is an old one by now.
func (g *SQLGate) raise(ctx context.Context, q querier, resource string, token redlock.Token) (seen redlock.Token, err error) {
	result, err := q.ExecContext(ctx, g.upsert(), g.args(resource, token)...)
	if err != nil {
		return 0, err
	}
	if g.dialect != MySQL {
		// Its count is that of rows written: 0 means that the condition did not hold.
		rows, err := result.RowsAffected()
		if err != nil || rows > 0 {
			return token, err
		}
	}
	// MySQL counts rows that are different now, or with the flag CLIENT_FOUND_ROWS also others: a
	// token that is admitted again is not to be told from one that is refused.
	var fence redlock.Token
	err = q.QueryRowContext(ctx, g.look(), g.key(resource)).Scan(&fence)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("%w: the row in %s has gone in the middle of it; find out who deletes fences", ErrDamagedFence, g.name)
	}
	if err == nil && g.dialect != MySQL && fence <= token {
		return 0, fmt.Errorf("%w: %s did not take token %d though it holds %d; is there a trigger?", ErrDamagedFence, g.name, token, fence)
	}
	return fence, err
}

func (g *SQLGate) upsert() string {
	d := g.dialect
	resource, token := d.quote("resource"), d.quote("token")
	insert := "INSERT INTO " + g.table + " (" + resource + ", " + token + ") VALUES (" + d.placeholder(1) + ", " + d.placeholder(2) + ")"
	if d == MySQL {
		return insert + " ON DUPLICATE KEY UPDATE " + token + " = GREATEST(" + token + ", ?)"
	}
	fence := d.quote("fence")
	return strings.Replace(insert, g.table, g.table+" AS "+fence, 1) + " ON CONFLICT (" + resource + ") DO UPDATE SET " +
		token + " = excluded." + token + " WHERE " + fence + "." + token + " <= excluded." + token
}

func (g *SQLGate) args(resource string, token redlock.Token) []any {
	args := []any{g.key(resource), int64(token)}
	if g.dialect == MySQL {
		args = append(args, int64(token))
	}
	return args
}

// look reads the fence. In MySQL it must not be read from a snapshot.
func (g *SQLGate) look() string {
	d := g.dialect
	query := "SELECT " + d.quote("token") + " FROM " + g.table + " WHERE " + d.quote("resource") + " = " + d.placeholder(1)
	if d == MySQL {
		query += " FOR UPDATE"
	}
	return query
}

// key is the resource as an argument: bytes for the column of MySQL, so that no character set of a
// connection is in the way.
func (g *SQLGate) key(resource string) any {
	if g.dialect == MySQL {
		return []byte(resource)
	}
	return resource
}

// Conflict reports whether an error of a statement or of Commit, by a driver for this dialect, says
// that the database undid the transaction because of others, and that the same transaction may pass
// when it is run again.
func (g *SQLGate) Conflict(err error) bool {
	return errors.Is(err, ErrTxConflict) || !g.unmade() && g.dialect.is(err, conflicts)
}

// unmade reports whether NewSQLGate did not make the gate.
func (g *SQLGate) unmade() bool { return g == nil || g.telemetry == nil }
