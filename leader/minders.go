package leader

import (
	"context"
	"fmt"
	"time"
)

// mind starts what runs beside the leading function, until that has returned.
func (e *Elector) mind(t *tenure) {
	ctx, cancel := context.WithCancel(t.ctx)
	t.hush = cancel
	t.minders.Go(func() { e.proclaim(ctx, t) })
	t.minders.Go(func() { e.mindReturn(t) })
}

// proclaim tells those who watch that the function has been called, and does not give up while the
// term lasts.
func (e *Elector) proclaim(ctx context.Context, t *tenure) {
	retry := newBackoff(e.settings.ttl)
	for t.announce(ctx, leading) != nil && ctx.Err() == nil {
		wait(ctx, retry.NextBackOff())
	}
}

// mindReturn ends a term that has lasted long enough, and reports a function that does not return.
func (e *Elector) mindReturn(t *tenure) {
	limit := time.NewTimer(e.settings.maxTerm)
	defer limit.Stop()
	select {
	case <-t.returned:
		return
	case <-limit.C:
		t.cancel(fmt.Errorf("%w: %v", ErrTermLimit, e.settings.maxTerm))
	case <-t.ctx.Done():
	}
	told := time.Now()
	patience := e.settings.stopGrace
	for first := true; ; first = false {
		timer := time.NewTimer(patience)
		select {
		case <-t.returned:
			timer.Stop()
			return
		case <-timer.C:
		}
		t.mu.Lock()
		t.stuck = true
		t.mu.Unlock()
		since := time.Since(told)
		e.settings.logger.ErrorContext(t.ctx, "leader: the leading function ignores the end of its context; this elector does not stand again before it has returned",
			append(t.attrs(), "ended", since, "cause", context.Cause(t.ctx))...)
		if first {
			e.telemetry.stuckTerms.Add(t.ctx, 1, e.telemetry.of(e.name))
			e.tell(Event{
				Kind: Stuck, Term: t.term, Lasted: time.Since(t.began),
				Err: fmt.Errorf("%w, which ended %v ago: %w", ErrStuck, since, context.Cause(t.ctx)),
			})
		}
		patience = min(2*patience, longestSilence)
	}
}

// longestSilence is how long a function that does not return goes unmentioned in the log at most.
const longestSilence = 10 * time.Minute

func (t *tenure) isStuck() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stuck
}

// wait waits, but no longer than ctx lasts.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
