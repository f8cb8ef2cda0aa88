package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

// A way is how a replica sees to it that the stock it has read is still so when it writes.
type way string

const (
	noGuard way = "no guard" // it does not
	rowLock way = "row lock" // the database locks the row from the read to the end of the transaction
	guarded way = "guard"    // a lease, and the token with the write
	batched way = "batches"  // the same, once for all who wait
)

var ways = []way{noGuard, rowLock, guarded, batched}

// A decision is what a buyer makes of the stock: how many units are taken out of it. It is the shop's
// business, and the same in every way.
type decision func(left int) (units int, err error)

// A seller sells units of a product. It returns the decision's error, errUnknown, or an error of package
// fencing or redlock: then nothing was sold. After errUnsure, and the errors of a database, it may have
// been.
type seller interface {
	sell(ctx context.Context, sku string, decide decision) error
}

var (
	errSoldOut = errors.New("sold out")
	errUnknown = errors.New("no such product")
	errUnsure  = errors.New("the sale may have been written or not")
)

// waitLimit is how long a buyer waits for his turn before he is told to come again.
const waitLimit = 20 * time.Second

// newSeller makes the seller of a way. Only the guarded ones need the locker, and have a queue.
func newSeller(w way, s *store, locker *redlock.Locker, queue int) (seller, error) {
	switch w {
	case noGuard:
		return &unguardedSeller{store: s}, nil
	case rowLock:
		return &rowLockSeller{store: s}, nil
	case guarded, batched:
		guard, err := fencing.NewGuard(locker, s.gate.On(s.db), fencing.WithQueueLimit(queue), fencing.WithWaitLimit(waitLimit))
		if err != nil {
			return nil, err
		}
		one := &guardedSeller{store: s, guard: guard}
		if w == guarded {
			return one, nil
		}
		return newBatchSeller(one)
	}
	return nil, fmt.Errorf("no way %q", w)
}
