package leader

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/redlock"
)

// A Term is one leadership.
type Term struct {
	// Name is that of the election.
	Name string
	// Number is the fencing token of the term: higher than that of every term before. Pass it
	// to the resources that the leader writes to. Terms are not numbered consecutively. It is 0
	// in what Elector.Leader returns while the holder has not published its term yet.
	Number redlock.Token
	// Leader is the identity of who leads: see WithIdentity.
	Leader string
	// Since is when the term began, by the leader's wall clock, in UTC. Zero while it is not
	// published.
	Since time.Time
}

// A tenure is a term in this process, from a lease that was won to its release.
type tenure struct {
	term     Term
	lease    *redlock.Lease
	span     trace.Span
	ctx      context.Context
	cancel   context.CancelCauseFunc
	unbind   func() // ends the tie to Run's context
	began    time.Time
	released chan struct{} // closed when err is known
	err      error         // of the release
}

// outcome is how a term ended.
type outcome string

const (
	steppedDown outcome = "stepped_down"
	failed      outcome = "failed"
	panicked    outcome = "panicked"
	exited      outcome = "exited"
	resigned    outcome = "resigned"
	stopped     outcome = "stopped"
	unpublished outcome = "unpublished"
)

// lease ends, in the words of package redlock.
var leaseOutcomes = []struct {
	err     error
	outcome outcome
}{
	{redlock.ErrClosed, "closed"},
	{redlock.ErrExtensionLimit, "extension_limit"},
	{redlock.ErrLeaseLost, "lost"},
	{redlock.ErrLeaseExpired, "expired"},
	{redlock.ErrReleased, "released"}, // by the leading function, which found the lease in its context
}

// An ending is how a term ended, and after what time.
type ending struct {
	outcome outcome
	err     error // what went wrong in the function, or before it
	lost    bool  // the lease ended first
	lasted  time.Duration
}

// serve takes one lease through its term.
func (e *Elector) serve(ctx context.Context, lease *redlock.Lease, lead func(context.Context, Term) error) (end ending) {
	t := e.newTenure(ctx, lease)
	err := errExited
	// Deferred, so that not even a function that ends its goroutine leaves the lease held.
	defer func() { end = e.conclude(t, err) }()
	// What is not published is not led: nobody could tell who leads, and a leader that does
	// not reach a quorum now would not last.
	if publishErr := t.publish(); publishErr != nil || t.ctx.Err() != nil {
		err = publishErr
		return end
	}
	e.mu.Lock()
	e.current = t
	e.mu.Unlock()
	e.settings.logger.InfoContext(t.ctx, "leader: term began", t.attrs()...)
	err = call(t, lead)
	return end
}

func (e *Elector) newTenure(ctx context.Context, lease *redlock.Lease) *tenure {
	now := time.Now()
	t := &tenure{
		lease: lease, began: now, released: make(chan struct{}),
		term: Term{Name: e.name, Number: lease.Token(), Leader: identityOf(lease.Owner()), Since: now.Round(0).UTC()},
	}
	if e.settings.identity != nil {
		t.term.Leader = *e.settings.identity
	}
	spanCtx, span := e.telemetry.start(t)
	t.span = span
	inner, cancel := context.WithCancelCause(spanCtx)
	t.ctx, t.cancel = &termContext{Context: inner, tenure: t}, cancel
	bound := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(bound)
		cancel(context.Cause(ctx))
	})
	t.unbind = func() {
		if !stop() {
			<-bound
		}
	}
	return t
}

// call calls the leading function, and makes an error of a panic.
func call(t *tenure, lead func(context.Context, Term) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{value: v, stack: debug.Stack()}
		}
	}()
	return lead(t.ctx, t.term)
}

// conclude ends a term whose function has returned, or never ran: only now is the lease
// released.
func (e *Elector) conclude(t *tenure, err error) ending {
	_ = t.ctx.Err() // has the context end if the clock says so, before the cause is asked for
	loss := t.lease.Err()
	// A resignation comes either before this, and then the elector stands back, or finds that
	// there is nothing to resign from.
	e.mu.Lock()
	e.current = nil
	cause := context.Cause(t.ctx)
	e.mu.Unlock()
	end := ending{outcome: outcomeOf(err, cause, loss), err: err, lasted: time.Since(t.began)}
	end.lost = loss != nil && errors.Is(cause, loss) && !errors.Is(loss, redlock.ErrReleased)
	if cause != nil && end.outcome != panicked && (errors.Is(err, context.Canceled) || errors.Is(err, cause)) {
		end.err = nil // it only says that the context ended
	}
	t.err = t.lease.Release(context.WithoutCancel(t.ctx))
	t.cancel(nil)
	t.unbind()
	e.report(t, end, cause)
	close(t.released)
	return end
}

// outcomeOf tells how a term ended: by what the function did, or by the end of its context,
// whatever the function then returned.
func outcomeOf(err, cause, loss error) outcome {
	var p *panicError
	switch {
	case errors.As(err, &p):
		return panicked
	case errors.Is(err, errExited):
		return exited
	case errors.Is(cause, ErrResigned):
		return resigned
	case loss != nil && errors.Is(cause, loss):
		for _, o := range leaseOutcomes {
			if errors.Is(loss, o.err) {
				return o.outcome
			}
		}
	case cause != nil:
		return stopped
	case errors.Is(err, errUnpublished):
		return unpublished
	case err == nil:
		return steppedDown
	}
	return failed
}

type tenureKey struct{}

// termContext is the context of a term.
type termContext struct {
	context.Context
	tenure *tenure
}

// Err looks at the clock, as that of the lease's context does.
func (c *termContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	// Not left to the lease's context: another goroutine may be just about to end that.
	if over := c.tenure.lease.Err(); over != nil {
		c.tenure.cancel(over)
	}
	return c.Context.Err()
}

func (c *termContext) Value(key any) any {
	if key == (tenureKey{}) {
		return c.tenure
	}
	return c.Context.Value(key)
}
