package redlock

import "context"

type leaseKey struct{}

// leaseContext is the context of a lease. It shares its cancellation with the context inside,
// so that contexts made from it cost no goroutine.
type leaseContext struct {
	context.Context
	lease *Lease
}

// Err ends the lease if its time is up and no timer has said so yet: after the machine slept,
// or on a machine too busy to run timers.
func (c *leaseContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	if over := c.lease.Err(); over != nil {
		c.lease.cancel(over) // who ends the lease does so too, in a moment
	}
	return c.Context.Err()
}

func (c *leaseContext) Value(key any) any {
	if key == (leaseKey{}) {
		return c.lease
	}
	return c.Context.Value(key)
}

// LeaseFrom returns the lease whose context ctx is, or is made from, so that code deep inside
// needs no extra argument.
func LeaseFrom(ctx context.Context) (*Lease, bool) {
	lease, ok := ctx.Value(leaseKey{}).(*Lease)
	return lease, ok
}
