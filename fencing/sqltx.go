package fencing

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/quorate/quorate/redlock"
)

// maxConflicts bounds how often InTx runs a transaction that conflicts with others.
const maxConflicts = 10

// InTx begins a transaction, admits the token, runs fn, and commits; when one of them fails, it rolls
// back and returns the error. When the database undid the transaction because of others, it is run again,
// fn included, up to ten times in all, with pauses of some milliseconds in between; then the
// error wraps ErrTxConflict. So fn must do nothing but what can be rolled back. opts may be nil.
//
// When Commit fails with an error other than a conflict, the writes may be there or not, and are not
// tried again: a holder that tries once more itself does so with the same token.
func (g *SQLGate) InTx(ctx context.Context, db *sql.DB, opts *sql.TxOptions, resource string, token redlock.Token, fn func(tx *sql.Tx) error) error {
	switch {
	case g.unmade():
		return fmt.Errorf("fencing: transaction %q: %w", resource, unmade("gate", "NewSQLGate"))
	case db == nil:
		return fmt.Errorf("fencing: transaction %q: %w: the database is nil; open one with sql.Open", resource, redlock.ErrInvalidOption)
	case fn == nil:
		return fmt.Errorf("fencing: transaction %q: %w: the function is nil; give what the transaction is to write", resource, redlock.ErrInvalidOption)
	}
	return g.again(ctx, resource, func() error { return g.once(ctx, db, opts, resource, token, fn) })
}

// again runs a transaction until it does not conflict with others, or has too often.
func (g *SQLGate) again(ctx context.Context, resource string, transaction func() error) error {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval, pause.MaxElapsedTime = 2*time.Millisecond, 100*time.Millisecond, 0
	for tries := 1; ; tries++ {
		err := transaction()
		if err == nil || !g.Conflict(err) {
			return err
		}
		if tries == maxConflicts {
			return fmt.Errorf("fencing: transaction %q: %w after %d tries: %w", resource, ErrTxConflict, tries, err)
		}
		timer := time.NewTimer(pause.NextBackOff())
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("fencing: transaction %q: %w; last: %w", resource, context.Cause(ctx), err)
		}
	}
}

func (g *SQLGate) once(ctx context.Context, db *sql.DB, opts *sql.TxOptions, resource string, token redlock.Token, fn func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, opts)
	if err != nil {
		return fmt.Errorf("fencing: transaction %q: begin: %w", resource, g.dialect.explain(ctx, err, g.DDL()))
	}
	// After Commit, and where ctx has ended, it does nothing; a panic of fn leaves no transaction open.
	defer func() { _ = tx.Rollback() }()
	if err := g.Admit(ctx, tx, resource, token); err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, sql.ErrTxDone) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		return fmt.Errorf("fencing: transaction %q: commit: %w", resource, err)
	}
	return nil
}

// On is the gate as a Guard and a handler want it: it admits by a statement of its own, which the database
// commits by itself. From then on older tokens are refused; the writes still need Admit, in their own
// transactions. A conflict is tried again as in InTx. Without a database it is nil, which NewGuard and
// NewHandler refuse.
func (g *SQLGate) On(db *sql.DB) Gate {
	if g.unmade() || db == nil {
		return nil
	}
	return GateFunc(func(ctx context.Context, resource string, token redlock.Token) error {
		return g.again(ctx, resource, func() error { return g.admit(ctx, db, resource, token) })
	})
}
