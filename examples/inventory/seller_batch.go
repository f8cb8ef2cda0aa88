package main

import (
	"context"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

// A batchSeller sells to all who wait in this process in one guarded section and one transaction: what
// databases call group commit, for one hot row.
type batchSeller struct {
	store   *store
	batcher *fencing.Batcher[*buyer]
}

// A buyer is one of a batch.
type buyer struct {
	sku    string
	decide decision
	served bool  // the answer below stands
	err    error // of the decision
}

func newBatchSeller(g *guardedSeller) (*batchSeller, error) {
	b := &batchSeller{store: g.store}
	var err error
	b.batcher, err = fencing.NewBatcher(g.guard, b.serve)
	return b, err
}

func (b *batchSeller) sell(ctx context.Context, sku string, decide decision) error {
	me := &buyer{sku: sku, decide: decide}
	err := b.batcher.Do(ctx, resource(sku), me)
	if me.served {
		return me.err // as with one: what the gate has admitted stands, also where the lease ended right after
	}
	return err
}

// serve sells to a batch, to one after the other, and writes once for all.
func (b *batchSeller) serve(ctx context.Context, _ string, _ redlock.Token, batch []*buyer) error {
	sku := batch[0].sku
	left, err := b.store.left(ctx, b.store.db, sku)
	if err != nil {
		return err
	}
	var orders []int
	for _, buyer := range batch {
		var units int
		if units, buyer.err = buyer.decide(left); buyer.err == nil {
			left -= units
			orders = append(orders, units)
		}
	}
	if len(orders) > 0 {
		if err := b.store.saveGuarded(ctx, sku, left, orders); err != nil {
			return err // and nobody is told that it is sold out: that may have been so only within this batch
		}
	}
	for _, buyer := range batch {
		buyer.served = true
	}
	return nil
}
