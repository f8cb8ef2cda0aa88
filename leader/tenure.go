package leader

import (
	"context"
	"errors"
	"maps"
	"runtime/debug"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/redlock"
)

// A tenure is a term in this process, from a lease that was won to its release.
type tenure struct {
	term   Term
	labels map[string]string // as published; the function has the term's
	lease  *redlock.Lease
	span   trace.Span
	ctx    context.Context
	cancel context.CancelCauseFunc
	unbind func() // ends the tie to Run's context
	began  time.Time

	turn   chan struct{} // of who puts a record on file
	buried bool          // the last one is on file; used by who has the turn
	heir   string        // whom Transfer has named; written before the context ends, used after it

	returned chan struct{} // closed when the function has returned
	minders  sync.WaitGroup
	hush     func()        // ends the announcement that the function runs
	released chan struct{} // closed when err is known
	err      error         // of the release

	mu    sync.Mutex
	state []byte // last known to be at a quorum
	stuck bool   // the function ignores its context
}

// outcome is how a term ended.
type outcome string

const (
	steppedDown outcome = "stepped_down"
	failed      outcome = "failed"
	panicked    outcome = "panicked"
	exited      outcome = "exited"
	resigned    outcome = "resigned"
	transferred outcome = "transferred"
	unhealthy   outcome = "unhealthy"
	termLimit   outcome = "term_limit"
	stopped     outcome = "stopped"
	unpublished outcome = "unpublished"
	stoodBack   outcome = "stood_back" // no term at all
)

// own ends are causes of a term's end that are the elector's own.
var ownEnds = []struct {
	err     error
	outcome outcome
}{
	{ErrResigned, resigned},
	{ErrTransferred, transferred},
	{ErrUnhealthy, unhealthy},
	{ErrTermLimit, termLimit},
}

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
	before, _ := parseRecord(lease.State())
	if pause, reason := e.scruple(&before); reason != nil {
		e.standBack(ctx, lease, reason, pause)
		e.standAside(ctx, pause, func(r *record) bool { return r.Number > before.Number }) // another was elected
		return ending{outcome: stoodBack}
	}
	t := e.newTenure(ctx, lease, before.State)
	err := errExited
	led := false
	// Deferred, so that not even a function that ends its goroutine leaves the lease held.
	defer func() { end = e.conclude(t, led, err) }()
	// What is not published is not led: nobody could tell who leads, and a leader that does
	// not reach a quorum now would not last.
	if publishErr := t.publish(); publishErr != nil || t.ctx.Err() != nil {
		err = publishErr
		return end
	}
	if sick := e.takeOffice(t); sick != nil {
		t.cancel(sick)
		err = nil
		return end
	}
	led = true
	e.settings.logger.InfoContext(t.ctx, "leader: term began", t.attrs()...)
	e.tell(Event{Kind: Began, Term: t.term})
	e.mind(t)
	err = call(t, lead)
	return end
}

// takeOffice makes the term the current one, unless the health check has failed meanwhile. A check that
// fails from then on finds the term, and ends it.
func (e *Elector) takeOffice(t *tenure) (sick error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if sick := e.fitness.sickness(); sick != nil {
		return sick
	}
	e.current = t
	return nil
}

// publish says to a quorum of nodes who has been elected.
func (t *tenure) publish() error {
	if err := t.announce(t.ctx, elected); err != nil {
		return errors.Join(errUnpublished, err)
	}
	return nil
}

func (e *Elector) newTenure(ctx context.Context, lease *redlock.Lease, state []byte) *tenure {
	now := time.Now()
	t := &tenure{
		lease: lease, began: now, labels: e.settings.labels, state: state,
		turn: make(chan struct{}, 1), returned: make(chan struct{}), released: make(chan struct{}), hush: func() {},
	}
	t.term = Term{
		Name: e.name, Number: lease.Token(), Leader: e.identity, Since: now.Round(0).UTC(),
		Address: e.settings.address, Labels: maps.Clone(e.settings.labels), tenure: t,
	}
	spanCtx, span := e.telemetry.start(t)
	t.span = span
	inner, cancel := context.WithCancelCause(spanCtx)
	t.ctx, t.cancel = &termContext{Context: inner, elector: e, tenure: t}, cancel
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
			err = &panicError{what: "leading function", value: v, stack: debug.Stack()}
		}
	}()
	return lead(t.ctx, t.term)
}

// conclude ends a term whose function has returned, or never ran: only now is the lease
// released.
func (e *Elector) conclude(t *tenure, led bool, err error) ending {
	defer close(t.released) // also where the observer ends the goroutine
	_ = t.ctx.Err()         // has the context end if the clock says so, before the cause is asked for
	loss := t.lease.Err()
	// A resignation comes either before this, and then the elector stands back, or finds that
	// there is nothing to resign from.
	e.mu.Lock()
	e.current = nil
	cause := context.Cause(t.ctx)
	e.mu.Unlock()
	close(t.returned)
	t.hush() // the next record says more
	t.minders.Wait()
	end := ending{outcome: outcomeOf(err, cause, loss), err: err, lasted: time.Since(t.began)}
	end.lost = loss != nil && errors.Is(cause, loss) && !errors.Is(loss, redlock.ErrReleased)
	if cause != nil && end.outcome != panicked && (errors.Is(err, context.Canceled) || errors.Is(err, cause)) {
		end.err = nil // it only says that the context ended
	}
	ctx := context.WithoutCancel(t.ctx)
	if led {
		_ = t.bury(ctx) // without it, those who watch find out by themselves
	}
	t.err = t.lease.Release(ctx)
	t.cancel(nil)
	t.unbind()
	e.report(t, end, cause)
	if led {
		why := end.err
		if why == nil {
			why = cause
		}
		e.tell(Event{Kind: Ended, Term: t.term, Outcome: string(end.outcome), Err: why, Lasted: end.lasted})
	}
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
	}
	for _, own := range ownEnds {
		if errors.Is(cause, own.err) {
			return own.outcome
		}
	}
	switch {
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

// tenureKey is what an elector's term is found by in a context: one may lead within another's term.
type tenureKey struct{ elector *Elector }

// termContext is the context of a term.
type termContext struct {
	context.Context
	elector *Elector
	tenure  *tenure
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
	if key == (tenureKey{c.elector}) {
		return c.tenure
	}
	return c.Context.Value(key)
}
