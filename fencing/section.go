package fencing

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/redlock"
)

// sectionContext is the context of a guarded section. Like that of a lease, its Err looks at the
// clock: a function that asks it is told of an end that no timer has announced yet.
type sectionContext struct {
	context.Context
	leases  []*redlock.Lease
	tickets *tickets
}

func (c *sectionContext) Err() error {
	for _, lease := range c.leases {
		_ = lease.Context().Err() // ends the lease, and with it this context, if its time is up
	}
	return c.Context.Err()
}

func (c *sectionContext) Value(key any) any {
	if key == (ticketsKey{}) {
		return c.tickets
	}
	return c.Context.Value(key)
}

// hold runs fn under leases. ctx is that of the last, and so ends with each of them: every lease was
// acquired with the context of the one before it. outer is the context that the caller gave.
func (g *Guard) hold(ctx, outer context.Context, leases []*redlock.Lease, fn func(context.Context, Tokens) error) error {
	names, tokens := make([]string, 0, len(leases)), make(Tokens, len(leases))
	for _, lease := range leases {
		names = append(names, lease.Name())
		tokens[lease.Name()] = lease.Token()
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	section := &sectionContext{Context: inner, leases: leases, tickets: newTickets(ctx, outer, maps.Clone(tokens), leases...)}
	defer g.limitHold(names, leases, cancel)()

	if !g.settings.late {
		for _, name := range names {
			if err := g.gate.Admit(section, name, tokens[name]); err != nil {
				return fmt.Errorf("fencing: guard %q: not admitted: %w", name, err)
			}
		}
	}
	if section.Err() != nil {
		return fmt.Errorf("fencing: guard %s: not begun: %w", label(names), context.Cause(section))
	}
	err := fn(section, tokens)
	cause := context.Cause(section)
	lost := slices.ContainsFunc(leases, func(l *redlock.Lease) bool { return l.Err() != nil })
	if errors.Is(cause, ErrHoldLimit) && !errors.Is(err, ErrHoldLimit) && (err != nil || lost) {
		return errors.Join(err, cause)
	}
	return err
}

// limitHold ends the section's context at the hold limit, and gives the leases back when the
// validity that was left then, of the one that has least, has run out. The function it returns
// ends the watch.
func (g *Guard) limitHold(names []string, leases []*redlock.Lease, cancel context.CancelCauseFunc) (stop func()) {
	limit := g.settings.holdLimit
	if limit == 0 {
		return func() {}
	}
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Add(1)
	timer := time.AfterFunc(limit, func() {
		defer watch.Done()
		cancel(fmt.Errorf("fencing: guard %s: %w after %v; do less under one guard, or raise WithHoldLimit", label(names), ErrHoldLimit, limit))
		left := leases[0].Remaining()
		for _, lease := range leases {
			left = min(left, lease.Remaining())
		}
		grace := time.NewTimer(left)
		defer grace.Stop()
		select {
		case <-done:
		case <-grace.C:
			// All at once, so that a node that hangs keeps none of the others. Their errors say
			// nothing new: the keys run out by themselves.
			var all sync.WaitGroup
			for _, lease := range leases {
				all.Go(func() { _ = lease.Release(context.WithoutCancel(lease.Context())) })
			}
			all.Wait()
		}
	})
	return func() {
		close(done)
		if timer.Stop() {
			watch.Done()
		}
		watch.Wait()
	}
}
