package main

import (
	"context"
	"sync"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

// maxBatch bounds a batch, so that no transaction is long.
const maxBatch = 100

// A batchSeller sells to all who wait in this process in one guarded section and one transaction: what
// databases call group commit, for one hot row.
type batchSeller struct {
	*guardedSeller
	limit int // of a line; 0: none

	mu    sync.Mutex
	lines map[string][]*buyer // by product; while a product is there, a goroutine serves its line
}

// A buyer stands in a line.
type buyer struct {
	decide decision
	err    error      // of the decision
	done   chan error // has room for the answer
}

func newBatchSeller(g *guardedSeller, limit int) *batchSeller {
	return &batchSeller{guardedSeller: g, limit: limit, lines: map[string][]*buyer{}}
}

// sell stays in the line also when ctx ends: a buyer who has left it might have been sold to.
func (b *batchSeller) sell(_ context.Context, sku string, decide decision) error {
	me := &buyer{decide: decide, done: make(chan error, 1)}
	if err := b.join(sku, me); err != nil {
		return err
	}
	return <-me.done
}

func (b *batchSeller) join(sku string, me *buyer) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	line, served := b.lines[sku]
	if b.limit > 0 && len(line) >= b.limit {
		return &fencing.QueueError{Resource: resource(sku), Waiting: len(line), Limit: b.limit}
	}
	b.lines[sku] = append(line, me)
	if !served {
		go b.serve(sku) // ends with the line
	}
	return nil
}

// take lets the first of a line come in.
func (b *batchSeller) take(sku string) []*buyer {
	b.mu.Lock()
	defer b.mu.Unlock()
	line := b.lines[sku]
	n := min(len(line), maxBatch)
	b.lines[sku] = line[n:]
	return line[:n]
}

// closeLine reports whether nobody was in it.
func (b *batchSeller) closeLine(sku string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.lines[sku]) > 0 {
		return false
	}
	delete(b.lines, sku)
	return true
}

// serve sells to a line until nobody is in it.
func (b *batchSeller) serve(sku string) {
	for !b.closeLine(sku) {
		batch, err := b.sellBatch(context.Background(), sku)
		for _, buyer := range batch {
			if err == nil {
				buyer.done <- buyer.err
			} else {
				// Nobody is told that it is sold out: that may have been so only within this batch.
				buyer.done <- err
			}
		}
	}
}

// sellBatch sells to as many as have come by the time the product is ours.
func (b *batchSeller) sellBatch(ctx context.Context, sku string) (batch []*buyer, err error) {
	saved := false
	err = b.guard.Do(ctx, resource(sku), func(ctx context.Context, _ redlock.Token) error {
		batch = b.take(sku)
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
		if len(orders) == 0 {
			return nil
		}
		err = b.store.saveGuarded(ctx, sku, left, orders)
		saved = err == nil
		return err
	})
	switch {
	case saved:
		return batch, nil // as with one
	case batch == nil:
		return b.take(sku), err // the section was not begun
	}
	return batch, err
}
