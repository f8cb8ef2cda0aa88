package main

import (
	"context"
	"errors"
	"time"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
)

// stumble lets one thing after the other go wrong, until ctx ends, so that what tells of it is seen: spans
// with errors, and metrics that an alert is about.
func (r *replica) stumble(ctx context.Context) {
	mishaps := []func(context.Context) error{r.forgetLease, r.stopLeading, r.writeLate}
	for i := r.number; pause(ctx, time.Second) == nil; i++ {
		r.report("mishap", mishaps[i%len(mishaps)](ctx))
	}
}

// forgetLease holds a lease for longer than it lasts.
func (r *replica) forgetLease(ctx context.Context) error {
	lease, err := r.locker.TryAcquire(ctx, "forgotten:"+r.name, redlock.WithTTL(time.Second))
	if err != nil {
		return err
	}
	select {
	case <-lease.Context().Done():
		return nil
	case <-ctx.Done():
		return lease.Release(context.WithoutCancel(ctx))
	}
}

// stopLeading ends the replica's term, if it leads: in one way, and the next time in the other.
func (r *replica) stopLeading(ctx context.Context) error {
	if !r.elector.IsLeader() {
		return nil
	}
	r.stops++
	if r.stops%2 == 1 {
		return r.nameNobody(ctx)
	}
	return r.ignoreContext(ctx)
}

// nameNobody hands the leadership on to one who is not there: who wins it instead stands back at first.
func (r *replica) nameNobody(ctx context.Context) error {
	err := r.elector.Transfer(ctx, "nobody")
	if errors.Is(err, leader.ErrNotLeader) || errors.Is(err, leader.ErrHeirAbsent) || errors.Is(err, leader.ErrNoLeader) {
		return nil
	}
	return err
}

// writeLate is the write of a holder who was paused for so long that its token is none of today's.
func (r *replica) writeLate(ctx context.Context) error {
	if err := r.gate.Set(ctx, "sku:1", 1, "sold:{sku:1}", 0, 0); !errors.Is(err, fencing.ErrStaleToken) {
		return err
	}
	return nil
}

// ignoreContext has the leading function go on for longer than it may.
func (r *replica) ignoreContext(ctx context.Context) error {
	r.dawdles.Store(true)
	err := r.elector.Resign(ctx)
	if errors.Is(err, leader.ErrNotLeader) {
		return nil
	}
	return err
}
