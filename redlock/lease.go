package redlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// A Lease is permission to act on a name until its validity ends. It is not proof that nobody
// else acts: see Token. It is safe for use by many goroutines.
type Lease struct {
	locker   *Locker
	name     string
	keys     keys
	owner    string
	token    Token
	top      Token // the highest of the range that the token is from
	settings leaseSettings
	turn     *turn
	since    time.Duration
	span     trace.SpanContext
	ctx      context.Context
	cancel   context.CancelCauseFunc

	mu         sync.Mutex
	timer      *time.Timer   // fires at the next thing to do: extend, or end
	end        time.Duration // of the validity; only grows
	extendAt   time.Duration // when the next automatic extension is due
	extending  bool          // an automatic extension is under way
	extensions int           // done so far
	failure    error         // of the last extension, nil when it went well
	number     Token         // fence number: the top, or higher after healing (see extend)
	grown      bool          // a node may hold the lock with a fence below the number
	refused    Token         // fence of a node that could not be healed with number
	skip       nodeSet       // nodes that need no release
	over       *LeaseError   // how it ended
	released   bool
	state      version // last known to be at a quorum
	sequence   int64   // of the last save begun
	unsaved    int     // saves of which it is not known that a quorum has them
	published  bool    // something was, and so is the release
}

func (l *Locker) newLease(base context.Context, span trace.SpanContext, c *campaign, g *grant) (*Lease, error) {
	lease := &Lease{
		locker: l, name: c.name, keys: c.keys, owner: g.owner, token: g.token, top: g.top, settings: c.settings, turn: c.turn,
		since: l.settings.clock.Elapsed(), span: span, end: g.end, number: g.number, skip: g.skip, state: g.state,
		grown: g.grown,
	}
	lease.extendAt = g.end - lease.validity() + c.settings.ttl/3
	ctx, cancel := context.WithCancelCause(base)
	lease.ctx, lease.cancel = &leaseContext{Context: ctx, lease: lease}, cancel
	// From hold on, Close and the look-out for sleep may end the lease, and stop its timer.
	lease.timer = time.AfterFunc(time.Hour, lease.tick)
	if err := l.hold(lease); err != nil {
		lease.timer.Stop()
		cancel(err)
		l.withdraw(c.keys, g)
		c.turn.leave()
		return nil, err
	}
	l.telemetry.held.Add(base, 1, c.class.plain)
	lease.mu.Lock()
	defer lease.mu.Unlock()
	if lease.over == nil {
		lease.arm(lease.since)
	}
	return lease, nil
}

// Name is the name of the resource.
func (l *Lease) Name() string { return l.name }

// Token is the fencing token: higher than that of every lease of this name before.
func (l *Lease) Token() Token { return l.token }

// Owner is the value that the lock keys hold: the identity, and random bits of this acquisition.
// Leases that were handed on inside a process, without asking the nodes again, share it.
func (l *Lease) Owner() string { return l.owner }

// Context ends when the lease does, at the latest when its validity ends (earlier by
// WithMargin), even if no node can be reached and the machine slept. context.Cause then gives a
// *LeaseError. It carries the values of the context that the lease was acquired with; its
// deadline is that context's, because the lease's own moves with every extension.
//
// Its Err looks at the clock, and so is right at any moment; Done is closed by a timer.
func (l *Lease) Context() context.Context { return l.ctx }

// SpanContext is that of the span redlock.acquire that won the lease, to link to.
func (l *Lease) SpanContext() trace.SpanContext { return l.span }

// Remaining is the validity left, as of now. With WithMargin it is more than zero for a while
// after the context has ended; then work should wind down.
func (l *Lease) Remaining() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.remaining()
}

// remaining is guarded by mu.
func (l *Lease) remaining() time.Duration {
	// An end by time leaves a margin, if there is one; any other end leaves nothing.
	if l.over != nil && !errors.Is(l.over.Err, ErrLeaseExpired) && !errors.Is(l.over.Err, ErrExtensionLimit) {
		return 0
	}
	return max(0, l.end-l.locker.settings.clock.Elapsed())
}

// Deadline is the end of the validity as a wall-clock time, for people and logs: a wall clock
// that is set moves it. To decide something, use Context or Remaining.
func (l *Lease) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.locker.settings.clock.Now().Add(l.end - l.locker.settings.clock.Elapsed())
}

// Err is nil while the lease lasts, and then the *LeaseError that says how it ended.
func (l *Lease) Err() error {
	l.endIfDue()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over == nil {
		return nil
	}
	return l.over
}

// Release ends the lease, and its context, and frees the name on all nodes. It returns nil when
// a quorum of nodes has confirmed; the others are still told. Where another goroutine of this
// process waits for the name, the lease may instead be handed on to it, for some times, as a new
// one with the next token; then no node is asked.
//
// When the lease had already ended, the error says how: the work may have overlapped with
// another holder's. When no quorum can be reached it wraps ErrNoQuorum, and the name is free at
// the latest when the TTL ends; nodes that come back before that are told. A second Release does
// nothing and returns ErrReleased. ctx bounds the waiting only.
func (l *Lease) Release(ctx context.Context) (err error) {
	l.endIfDue()
	locker := l.locker
	ctx, span := locker.telemetry.start(ctx, "release", l.name, attrToken.Int64(int64(l.token)))
	defer func() { finish(span, err) }()

	l.mu.Lock()
	if l.released {
		l.mu.Unlock()
		return &LeaseError{Name: l.name, Token: l.token, Err: ErrReleased}
	}
	l.released = true
	left := l.remaining()
	l.mu.Unlock()

	sent := locker.sending()
	defer sent()
	lasted := l.finish(ErrReleased, nil)
	if lasted {
		locker.telemetry.released(ctx, l.class(), locker.settings.clock.Elapsed()-l.since, left)
		if l.handOver() {
			return nil
		}
	}
	l.mu.Lock()
	before := l.over
	e := ending{owner: l.owner, number: l.number, grown: l.grown, held: true, skip: l.skip}
	if lasted {
		e.line = l.turn.passOn(locker, l.settings.ttl)
	}
	if l.published {
		e.news = l.keys.news()
	}
	step := releaseStep(l.keys, e, &locker.settings)
	l.mu.Unlock()
	var heard func(*result)
	if lasted {
		heard = l.turn.hear()
	}
	decided := make(chan struct{})
	b := locker.fleet.ask(step, nil, func(b *ballot) {
		if heard != nil {
			r := b.result()
			heard(&r)
		}
		close(decided)
	})
	// The next in line may ask at once: its steps follow the release on every lane.
	l.turn.leave()
	sent()

	select {
	case <-decided:
	case <-ctx.Done():
		return fmt.Errorf("redlock: release %q: %w; it goes on in the background", l.name, context.Cause(ctx))
	}
	r := b.result()
	span.SetAttributes(attrVotes.Int(r.votes))
	switch {
	case !lasted:
		return before
	case !r.won:
		return r.failure("release", l.name, locker.fleet.nodes)
	}
	return nil
}

// class is what metrics say of the name. It is looked up again, since there may be very many leases.
func (l *Lease) class() *class { return l.locker.telemetry.classes.get(l.name) }

// finish ends the lease and its context, unless it has ended already, and reports whether it
// did. The nodes are not told: where the end was not the holder's will, its work may still be
// winding down, and the keys run out by themselves.
func (l *Lease) finish(why, last error) bool {
	over := &LeaseError{Name: l.name, Token: l.token, Err: why, Last: last}
	l.mu.Lock()
	if l.over != nil {
		l.mu.Unlock()
		return false
	}
	l.over = over
	l.timer.Stop()
	l.mu.Unlock()

	l.cancel(over)
	l.locker.forget(l)
	l.locker.telemetry.held.Add(l.ctx, -1, l.class().plain)
	l.locker.settings.observeEnd(l, l.locker.settings.clock.Elapsed()-l.since, over)
	if !errors.Is(why, ErrReleased) {
		l.turn.leave()
		l.locker.telemetry.leaseLost(l.ctx, l.class(), over)
		l.locker.settings.logger.Warn("redlock: lease ended before it was released", "name", l.name, "token", l.token, "owner", l.owner, "cause", why, "error", last)
	}
	return true
}
