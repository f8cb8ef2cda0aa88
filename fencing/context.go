package fencing

import (
	"context"

	"github.com/quorate/quorate/redlock"
)

// TokenFrom returns the token of the lease whose context ctx is, or is made from: in a guarded
// section the token that was admitted, so that code deep inside needs no extra argument.
func TokenFrom(ctx context.Context) (redlock.Token, bool) {
	lease, ok := redlock.LeaseFrom(ctx)
	if !ok {
		return 0, false
	}
	return lease.Token(), true
}

// sectionContext is the context of a guarded section. Like that of the lease, its Err looks at
// the clock: a function that asks it is told of an end that no timer has announced yet.
type sectionContext struct {
	context.Context
	lease context.Context
}

func (c *sectionContext) Err() error {
	_ = c.lease.Err() // ends the lease, and with it this context, if its time is up
	return c.Context.Err()
}
