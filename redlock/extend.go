package redlock

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/internal/quorum"
)

// The life of a lease after it was won hangs on one timer, which fires at whatever is next: an
// extension at a third of the TTL, another try after one that failed, or the end. Extensions
// are asked for and counted on the lanes' goroutines; a lease has none of its own.
//
// The fence number. A node accepts an extension of a lease that it does not hold only while its
// fence is below the lease's number. At first that is the token. A rival that loses leaves its
// higher token as the fence, and a node that hung past the TTL has the lock expired under our
// own: both could never vote for this lease again, and one such node after the other would
// erode its quorum. So a lease that meets such a fence raises its number above it for the next
// extension. The nodes that hold the lease raise their fence as well, and the release names
// the number, so that a delayed extension still finds a fence that stops it.

// Extend prolongs the lease by its TTL, counted from now. It is not needed while automatic
// extension is on. ErrExtensionLimit: no more are allowed, the lease goes on until its validity
// ends. ErrLeaseLost: the nodes say it is not ours any more; its context has ended. Any other
// failure leaves the lease as it is, and it may be tried again.
func (l *Lease) Extend(ctx context.Context) error {
	done := make(chan error, 1)
	l.extend(ctx, func(err error) { done <- err })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *Lease) automatic() bool { return l.settings.autoExtend == extensionOn }

// contextEnd is when the lease's context ends unless it is extended. Guarded by mu.
func (l *Lease) contextEnd() time.Duration { return l.end - l.settings.margin }

// validity is what an extension, or the acquisition, gives from its start.
func (l *Lease) validity() time.Duration { return quorum.Validity(l.settings.ttl, 0) }

// arm sets the timer to what is due next. Guarded by mu.
func (l *Lease) arm(now time.Duration) {
	next := l.contextEnd()
	if l.automatic() && !l.extending && l.extensions < l.settings.maxExtensions {
		next = min(next, l.extendAt)
	}
	l.timer.Reset(max(0, next-now))
}

// tick does what is due. The timer calls it, and whoever sees that the clock has jumped.
func (l *Lease) tick() {
	if l.endIfDue() {
		return
	}
	now := l.locker.settings.clock.Elapsed()
	l.mu.Lock()
	if l.over != nil {
		l.mu.Unlock()
		return
	}
	due := l.automatic() && !l.extending && now >= l.extendAt && l.extensions < l.settings.maxExtensions
	l.extending = l.extending || due
	l.arm(now)
	l.mu.Unlock()
	if due {
		l.extend(l.ctx, nil)
	}
}

// endIfDue ends the lease if the clock says that its time is up, and reports whether it is over.
func (l *Lease) endIfDue() bool {
	now := l.locker.settings.clock.Elapsed()
	l.mu.Lock()
	if l.over != nil || now < l.contextEnd() {
		over := l.over != nil
		l.mu.Unlock()
		return over
	}
	why, last := ErrLeaseExpired, l.failure
	if l.automatic() && l.extensions >= l.settings.maxExtensions {
		why = ErrExtensionLimit
	}
	l.mu.Unlock()
	l.finish(why, last)
	return true
}

// extend puts an extension to the nodes. An automatic one has no done.
func (l *Lease) extend(ctx context.Context, done func(error)) {
	locker := l.locker
	_, span := locker.telemetry.start(ctx, "extend", l.name, attrToken.Int64(int64(l.token)))
	span.AddLink(trace.Link{SpanContext: l.span})
	finished := func(err error) {
		finish(span, err)
		if done != nil {
			done(err)
		}
	}
	l.endIfDue()
	l.mu.Lock()
	switch {
	case l.over != nil:
		over := l.over
		l.mu.Unlock()
		finished(over)
		return
	case l.extensions >= l.settings.maxExtensions:
		if done == nil { // one by hand was faster
			l.extending = false
			l.arm(locker.settings.clock.Elapsed())
		}
		l.mu.Unlock()
		finished(&LeaseError{Name: l.name, Token: l.token, Err: ErrExtensionLimit})
		return
	}
	l.extensions++
	l.skip = 0
	if l.refused >= l.number {
		// An error leaves the number as it is: those nodes stay out, the others go on.
		if n, err := locker.tokens.next(locker.settings.clock.Now(), l.refused); err == nil {
			l.number, l.grown = n, true
		}
	}
	step := extendStep(l.keys, l.owner, l.number, &locker.settings, l.settings.ttl)
	l.mu.Unlock()

	start := locker.settings.clock.Elapsed()
	automatic := done == nil
	locker.fleet.ask(step, l.heal, func(b *ballot) {
		r := b.result()
		span.SetAttributes(attrVotes.Int(r.votes))
		finished(l.extended(start, &r, automatic))
	})
}

// extended takes note of a decided extension. It counts only if it was decided while the lease
// was still valid ("and within the validity time").
func (l *Lease) extended(start time.Duration, r *result, automatic bool) error {
	l.mu.Lock()
	now := l.locker.settings.clock.Elapsed() // guarded: who has seen the validity end is not to see it go on
	if automatic {
		l.extending = false
	}
	if l.over != nil || now >= l.contextEnd() {
		l.mu.Unlock()
		return l.Err()
	}
	if r.won {
		l.end = max(l.end, start+l.validity())
		l.extendAt, l.failure = start+l.settings.ttl/3, nil
		l.arm(now)
		l.mu.Unlock()
		return nil
	}
	failure := r.failure("extend", l.name, l.locker.fleet.nodes)
	l.extensions--
	l.failure = failure
	l.extendAt = now + l.settings.ttl/32 + jitter(l.settings.ttl/32)
	l.arm(now)
	l.mu.Unlock()
	if errors.Is(failure, ErrLeaseLost) {
		l.finish(ErrLeaseLost, failure)
	}
	return failure
}

// heal looks at each node's answer to an extension, also at those that come late.
func (l *Lease) heal(node int, a *answer) {
	switch a.verdict {
	case stale:
		l.mu.Lock()
		l.refused = max(l.refused, a.fence)
		l.mu.Unlock()
	case accepted, healed:
		l.mu.Lock()
		v := l.state
		l.mu.Unlock()
		if !a.state.before(v) {
			return
		}
		// The node has forgotten the state. It is put back, if it is of a holder before as this
		// one's; if that fails, the next extension shows it.
		if v.token != l.token {
			v = version{token: l.token, value: v.value}
		}
		l.locker.fleet.lanes[node].submit(&op{step: saveStep(l.keys, l.owner, v, "", &l.locker.settings), done: func(answer) {}})
	}
}
