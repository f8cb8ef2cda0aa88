package main

import (
	"context"
	"database/sql"
)

// A rowLockSeller locks the row from the read to the write. That is correct, for as long as nothing else
// than this database is in the decision; and whoever waits does so in the database, with a connection
// and an open transaction, also while the one who has the row is frozen.
type rowLockSeller struct{ store *store }

func (r *rowLockSeller) sell(ctx context.Context, sku string, decide decision) error {
	return r.store.inTx(ctx, func(tx *sql.Tx) error {
		left, err := r.store.lockAndRead(ctx, tx, sku)
		if err != nil {
			return err
		}
		units, err := decide(left)
		if err != nil {
			return err
		}
		return r.store.save(ctx, tx, sku, left-units, []int{units}, 0)
	})
}
