package fencing

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	lines     *lines
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
	return &Guard{locker: locker, gate: gate, settings: s, telemetry: t, lines: newLines()}, nil
}

// Tokens are the tokens of a guarded section, by resource. A name that is not there gives 0, which
// every gate refuses.
type Tokens map[string]redlock.Token

// Do waits for the resource, has the gate admit the lease's token, runs fn, and releases the
// resource when fn has returned. The lease is extended until then, within WithHoldLimit.
//
// What fn reads is what the holders before it have left, to the last write: their tokens are
// shut out before fn starts (but see WithoutAdmission). What fn writes must go through the gate, with the token, because
// only there a pause between the last look at the lease and the write does no harm. fn's context
// ends when ctx does, when the lease does, and at the hold limit; context.Cause says why.
//
// Do returns fn's error. If the lease ended before fn returned, the error says so as well
// (redlock.ErrLeaseExpired and the like, ErrHoldLimit), also where fn returned nil: writes that
// the gate admitted are sound even then, anything else that fn did may have overlapped with
// another holder. Where fn was not run, the error is ErrWaitLimit, ErrQueueFull, what Locker.Do
// returns, or the gate's: ErrStaleToken when it has seen a higher token than that of this new
// lease.
func (g *Guard) Do(ctx context.Context, resource string, fn func(ctx context.Context, token redlock.Token) error) error {
	return g.run(ctx, &call{resources: []string{resource}, under: g.wait, bounded: true, fn: one(resource, fn)})
}

// TryDo is Do without the waiting: it asks for the resource once. When it is taken, also by this
// process, the error wraps redlock.ErrTaken and fn was not run. WithQueueLimit does not matter.
func (g *Guard) TryDo(ctx context.Context, resource string, fn func(ctx context.Context, token redlock.Token) error) error {
	return g.run(ctx, &call{resources: []string{resource}, under: g.try, fn: one(resource, fn)})
}

// DoAll is Do for several resources at once: fn runs when all are held and all tokens admitted, or
// not at all, and its context ends when any of the leases ends, with that lease's cause. WithWaitLimit
// bounds the waiting for all together.
//
// It takes them one by one in the order of their names, whatever order they are given in, so calls
// of DoAll never wait for each other in a circle. That holds among calls that take all they
// need at once: a Do inside of fn has no such order, and needs WithWaitLimit.
//
// No resources, one that is named twice, and a nil fn are errors that wrap redlock.ErrInvalidOption.
func (g *Guard) DoAll(ctx context.Context, resources []string, fn func(ctx context.Context, tokens Tokens) error) error {
	return g.run(ctx, &call{resources: slices.Sorted(slices.Values(resources)), under: g.wait, bounded: true, fn: fn})
}

// one makes of a function for one resource one for several.
func one(resource string, fn func(context.Context, redlock.Token) error) func(context.Context, Tokens) error {
	if fn == nil {
		return nil
	}
	return func(ctx context.Context, tokens Tokens) error { return fn(ctx, tokens[resource]) }
}

// A call is one use of a guard.
type call struct {
	resources []string // in the order in which they are taken
	under     func(ctx context.Context, resource string, fn func(context.Context, *redlock.Lease) error) error
	bounded   bool // the queue limit counts
	limited   bool // the caller minds the wait limit itself
	fn        func(context.Context, Tokens) error
}

// label is what the call is about, in errors.
func label(resources []string) string {
	switch {
	case len(resources) == 1:
		return fmt.Sprintf("%q", resources[0])
	case len(resources) > 4:
		return fmt.Sprintf("%q, %q and %d more", resources[0], resources[1], len(resources)-2)
	}
	s := ""
	for i, r := range resources {
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprintf("%q", r)
	}
	return s
}

// check finds what is wrong with a call before a node hears of it.
func (g *Guard) check(c *call) error {
	if c.fn == nil {
		return fmt.Errorf("fencing: guard %s: %w: the function is nil; give what is to be done while the resource is held", label(c.resources), redlock.ErrInvalidOption)
	}
	if len(c.resources) == 0 {
		return fmt.Errorf("fencing: guard: %w: there are no resources; name those that the function changes", redlock.ErrInvalidOption)
	}
	for i, r := range c.resources {
		if err := g.locker.Validate(r, g.settings.lease...); err != nil {
			return fmt.Errorf("fencing: guard: %w", err)
		}
		if i > 0 && r == c.resources[i-1] {
			return fmt.Errorf("fencing: guard %q: %w: the resource is named twice, and nobody can hold it twice; leave one out", r, redlock.ErrInvalidOption)
		}
	}
	return nil
}

// run takes the resources one after the other, each under the leases of those before it, and runs
// the function under all of them.
func (g *Guard) run(ctx context.Context, c *call) (err error) {
	if err := g.check(c); err != nil {
		return err
	}
	outer := ctx
	ctx, span := g.telemetry.start(ctx, c.resources)
	returned := false
	defer func() { g.telemetry.finish(ctx, span, returned, err) }()

	limit := 0
	if c.bounded {
		limit = g.settings.queueLimit
	}
	if err = g.lines.enter(c.resources, limit); err != nil {
		returned = true
		return err
	}
	defer g.lines.leave(c.resources)

	waiting, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	inTime := func() bool { return true }
	if !c.limited {
		inTime = g.limitWait(giveUp)
	}
	defer inTime()
	leases := make([]*redlock.Lease, 0, len(c.resources))
	var take func(ctx context.Context) error
	take = func(ctx context.Context) error {
		if len(leases) < len(c.resources) {
			return c.under(ctx, c.resources[len(leases)], func(ctx context.Context, lease *redlock.Lease) error {
				leases = append(leases, lease)
				return take(ctx)
			})
		}
		if !inTime() {
			return fmt.Errorf("fencing: guard %s: %w", label(c.resources), g.waitLimitReached())
		}
		cover(span, leases)
		return g.hold(ctx, outer, leases, c.fn)
	}
	err = take(waiting)
	returned = true
	return err
}

// wait runs fn under the lease of a resource, when it is free.
func (g *Guard) wait(ctx context.Context, resource string, fn func(context.Context, *redlock.Lease) error) error {
	return g.locker.Do(ctx, resource, fn, g.settings.lease...)
}

// try runs fn under the lease of a resource, if it is free. All but the waiting is as in Locker.Do.
func (g *Guard) try(ctx context.Context, resource string, fn func(context.Context, *redlock.Lease) error) error {
	opts := append([]redlock.LeaseOption{redlock.WithAutoExtend(true)}, g.settings.lease...)
	lease, err := g.locker.TryAcquire(ctx, resource, opts...)
	if err != nil {
		return err
	}
	// Its error says nothing new: the key runs out by itself.
	defer func() { _ = lease.Release(context.WithoutCancel(ctx)) }()
	// The context of a lease that was acquired by hand does not end with the caller's. It has to be the
	// parent, so that the end of the lease is the end of the work at the same moment.
	both, cancel := context.WithCancelCause(lease.Context())
	defer cancel(nil)
	deadline, limited := ctx.Deadline()
	defer context.AfterFunc(ctx, func() {
		if !limited || !errors.Is(ctx.Err(), context.DeadlineExceeded) { // which the deadline below tells
			cancel(context.Cause(ctx))
		}
	})()
	if limited {
		var stop context.CancelFunc
		both, stop = context.WithDeadline(both, deadline)
		defer stop()
	}
	err = fn(both, lease)
	loss := lease.Err()
	if loss == nil || errors.Is(loss, redlock.ErrReleased) || errors.Is(err, loss) {
		return err
	}
	return errors.Join(err, loss)
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
