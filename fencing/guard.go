package fencing

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quorate/quorate/redlock"
)

// A Guard runs functions that change a resource, one at a time for each resource across the
// fleet, with a token that the resource's gate has admitted. It is safe for use by many
// goroutines and holds nothing that needs closing.
type Guard struct {
	locker    *redlock.Locker
	gate      Gate
	settings  guardSettings
	telemetry *guardTelemetry
}

// NewGuard makes a Guard of the Locker that gives the leases and the gate at the resources.
// Both stay the caller's. The error wraps redlock.ErrInvalidOption, or is what the Locker says of
// WithLease (redlock.ErrTTLTooLong, redlock.ErrTTLTooShort).
func NewGuard(locker *redlock.Locker, gate Gate, opts ...GuardOption) (*Guard, error) {
	switch {
	case locker == nil:
		return nil, fmt.Errorf("fencing: %w: the locker is nil; make one with redlock.New", redlock.ErrInvalidOption)
	case missing(gate):
		return nil, fmt.Errorf("fencing: %w: the gate is nil; a lease alone does not stop a holder that wakes up late", redlock.ErrInvalidOption)
	}
	s, err := newGuardSettings(opts)
	if err != nil {
		return nil, err
	}
	if err := locker.Validate("resource", s.lease...); err != nil {
		return nil, fmt.Errorf("fencing: options of the lease: %w", err)
	}
	t, err := newGuardTelemetry(&s)
	if err != nil {
		return nil, fmt.Errorf("fencing: create metrics: %w", err)
	}
	return &Guard{locker: locker, gate: gate, settings: s, telemetry: t}, nil
}

// Do waits for the resource, has the gate admit the lease's token, runs fn, and releases the
// resource when fn has returned. The lease is extended until then, within WithHoldLimit.
//
// What fn reads is what the holders before it have left, to the last write: their tokens are
// shut out before fn starts. What fn writes must go through the gate, with the token, because
// only there a pause between the last look at the lease and the write does no harm. fn's context
// ends when ctx does, when the lease does, and at the hold limit; context.Cause says why.
//
// Do returns fn's error. If the lease ended before fn returned, the error says so as well
// (redlock.ErrLeaseExpired and the like, ErrHoldLimit), also where fn returned nil: writes that
// the gate admitted are sound even then, anything else that fn did may have overlapped with
// another holder. Where fn was not run, the error is ErrWaitLimit, what Locker.Do returns, or
// the gate's: ErrStaleToken when it has seen a higher token than that of this new lease.
func (g *Guard) Do(ctx context.Context, resource string, fn func(ctx context.Context, token redlock.Token) error) (err error) {
	if fn == nil {
		return fmt.Errorf("fencing: guard %q: %w: the function is nil", resource, redlock.ErrInvalidOption)
	}
	ctx, span := g.telemetry.start(ctx, resource)
	returned := false
	defer func() { g.telemetry.finish(ctx, span, returned, err) }()

	waiting, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	inTime := g.limitWait(giveUp)
	defer inTime()
	err = g.locker.Do(waiting, resource, func(ctx context.Context, lease *redlock.Lease) error {
		if !inTime() {
			return fmt.Errorf("fencing: guard %q: %w", resource, g.waitLimitReached())
		}
		cover(span, lease)
		return g.hold(ctx, lease, fn)
	}, g.settings.lease...)
	returned = true
	return err
}

// limitWait has the waiting end at its limit, unless the function it returns is called before
// that, which tells whether it was.
func (g *Guard) limitWait(giveUp context.CancelCauseFunc) (inTime func() bool) {
	if g.settings.waitLimit == 0 {
		return func() bool { return true }
	}
	return time.AfterFunc(g.settings.waitLimit, func() { giveUp(g.waitLimitReached()) }).Stop
}

func (g *Guard) waitLimitReached() error {
	return fmt.Errorf("%w after %v", ErrWaitLimit, g.settings.waitLimit)
}

// hold runs fn under a lease.
func (g *Guard) hold(ctx context.Context, lease *redlock.Lease, fn func(context.Context, redlock.Token) error) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	section := &sectionContext{Context: inner, lease: ctx}
	defer g.limitHold(lease, cancel)()

	if err := g.gate.Admit(section, lease.Name(), lease.Token()); err != nil {
		return fmt.Errorf("fencing: guard %q: not admitted: %w", lease.Name(), err)
	}
	if section.Err() != nil {
		return fmt.Errorf("fencing: guard %q: not begun: %w", lease.Name(), context.Cause(section))
	}
	err := fn(section, lease.Token())
	cause := context.Cause(section)
	if errors.Is(cause, ErrHoldLimit) && !errors.Is(err, ErrHoldLimit) && (err != nil || lease.Err() != nil) {
		return errors.Join(err, cause)
	}
	return err
}

// limitHold ends the section's context at the hold limit, and gives the lease back when the
// validity that was left then has run out. The function it returns ends the watch.
func (g *Guard) limitHold(lease *redlock.Lease, cancel context.CancelCauseFunc) (stop func()) {
	limit := g.settings.holdLimit
	if limit == 0 {
		return func() {}
	}
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Add(1)
	timer := time.AfterFunc(limit, func() {
		defer watch.Done()
		cancel(fmt.Errorf("fencing: guard %q: %w after %v; do less under one guard, or raise WithHoldLimit", lease.Name(), ErrHoldLimit, limit))
		grace := time.NewTimer(lease.Remaining())
		defer grace.Stop()
		select {
		case <-done:
		case <-grace.C:
			// Its error says nothing new: the key runs out by itself.
			_ = lease.Release(context.WithoutCancel(lease.Context()))
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
