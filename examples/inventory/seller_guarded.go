package main

import (
	"context"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

// A guardedSeller holds the product while it reads, decides and writes. Whoever waits does so in its
// own process, without a connection; and who comes late is refused by the gate.
type guardedSeller struct {
	store *store
	guard *fencing.Guard
}

func (g *guardedSeller) sell(ctx context.Context, sku string, decide decision) error {
	sold := false
	err := g.guard.Do(ctx, resource(sku), func(ctx context.Context, _ redlock.Token) error {
		left, err := g.store.left(ctx, g.store.db, sku) // final, as far as older holders go
		if err != nil {
			return err
		}
		units, err := decide(left)
		if err != nil {
			return err
		}
		err = g.store.saveGuarded(ctx, sku, left-units, []int{units})
		sold = err == nil
		return err
	})
	if sold {
		return nil // the gate has admitted it: so it stands, also where the lease ended right after
	}
	return err
}
