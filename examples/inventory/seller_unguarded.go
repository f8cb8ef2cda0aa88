package main

import "context"

// An unguardedSeller reads, decides and writes. Between the read and the write others do the same. A
// transaction around it would change nothing, at the level that is the default of most databases.
type unguardedSeller struct{ store *store }

func (u *unguardedSeller) sell(ctx context.Context, sku string, decide decision) error {
	left, err := u.store.left(ctx, u.store.db, sku)
	if err != nil {
		return err
	}
	units, err := decide(left)
	if err != nil {
		return err
	}
	return u.store.save(ctx, u.store.db, sku, left-units, []int{units}, 0)
}
