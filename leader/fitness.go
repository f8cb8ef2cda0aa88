package leader

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// fitness is whether this replica may lead, as far as its health check and its eligibility say. There
// is none where neither was asked for; then it always may.
type fitness struct {
	elector *Elector
	every   time.Duration

	mu      sync.Mutex
	sick    error         // why it is not healthy
	barred  error         // why it is not eligible
	changed chan struct{} // closed at the next change
	cancel  context.CancelFunc
}

// watchFitness begins to ask, until ctx ends or the function that it returns is called, which waits
// for the last answer.
func (e *Elector) watchFitness(ctx context.Context) (stop func()) {
	s := &e.settings
	if s.check == nil && s.eligible == nil {
		return func() {}
	}
	f := &fitness{elector: e, every: s.checkEvery, changed: make(chan struct{})}
	if s.check != nil {
		f.sick = fmt.Errorf("%w: %w", ErrUnhealthy, errUnchecked)
	}
	if s.eligible != nil {
		f.barred = fmt.Errorf("%w: %w", errNotEligible, errUnchecked)
	}
	e.mu.Lock()
	e.fitness = f
	e.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	if s.eligible != nil {
		wg.Go(func() { f.askEligible(ctx) })
	}
	if s.check != nil {
		wg.Go(func() { f.askHealth(ctx) })
	}
	return func() {
		cancel()
		wg.Wait()
		e.mu.Lock()
		e.fitness = nil
		e.mu.Unlock()
	}
}

// askEligible asks whether the elector is eligible, again and again.
func (f *fitness) askEligible(ctx context.Context) {
	for ctx.Err() == nil {
		f.set(&f.barred, f.eligible())
		wait(ctx, f.every)
	}
}

func (f *fitness) eligible() error {
	err := <-ask("eligibility", func() error {
		if !f.elector.settings.eligible() {
			return errNotEligible
		}
		return nil
	})
	if err != nil && !errors.Is(err, errNotEligible) {
		return fmt.Errorf("%w: %w", errNotEligible, err)
	}
	return err
}

// ask puts a question of the caller's in a goroutine of its own, which may end without an answer.
func ask(what string, question func() error) <-chan error {
	answer := make(chan error, 1)
	go func() {
		err := errExitedCheck // unless it returns
		defer func() {
			if v := recover(); v != nil {
				err = &panicError{what: what, value: v, stack: debug.Stack()}
			}
			answer <- err
		}()
		err = question()
	}()
	return answer
}

// askHealth asks for the health, again and again. There is one check at a time, however long it takes.
func (f *fitness) askHealth(ctx context.Context) {
	next := time.NewTimer(0)
	defer next.Stop()
	for ctx.Err() == nil { // the timer may be due as well
		select {
		case <-next.C:
		case <-ctx.Done():
			return
		}
		next.Reset(f.every)
		checking, cancel := context.WithTimeoutCause(ctx, f.every, errCheckHangs)
		answer := ask("health check", func() error { return f.elector.settings.check(checking) })
		select {
		case err := <-answer:
			f.judge(ctx, err)
		case <-checking.Done():
			f.judge(ctx, errCheckHangs)
			if err := <-answer; err != nil {
				f.judge(ctx, err)
			}
			next.Reset(0) // a yes that comes late is worth nothing: it is asked again
		}
		cancel()
	}
}

// judge takes note of a check's answer, unless the end of Run has spoilt it.
func (f *fitness) judge(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrUnhealthy, err)
	}
	f.set(&f.sick, err)
	if err == nil {
		return
	}
	if t := f.elector.tenure(); t != nil && t.ctx.Err() == nil {
		f.elector.end(t, "", err)
	}
}

// set takes note of an answer.
func (f *fitness) set(which *error, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.fit()
	had := *which
	*which = err
	if after := f.fit(); after != before {
		close(f.changed)
		f.changed = make(chan struct{})
		if !after && f.cancel != nil {
			f.cancel()
		}
	}
	if (had == nil) != (err == nil) && !errors.Is(had, errUnchecked) {
		e := f.elector
		if err != nil {
			e.settings.logger.Warn("leader: no longer fit to lead", "name", e.name, "leader", e.identity, "error", err)
		} else {
			e.settings.logger.Info("leader: fit to lead again", "name", e.name, "leader", e.identity)
		}
	}
}

// fit is guarded by mu.
func (f *fitness) fit() bool { return f.sick == nil && f.barred == nil }

// unfit is why this replica may not lead, or nil.
func (f *fitness) unfit() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.sick, f.barred)
}

// sickness is why this replica is not healthy, or nil.
func (f *fitness) sickness() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sick
}

// wait waits until this replica may lead, or until there is nothing to stand for any more.
func (f *fitness) wait(ctx context.Context, closed <-chan struct{}) error {
	if f == nil {
		return nil
	}
	for {
		f.mu.Lock()
		fit, changed := f.fit(), f.changed
		f.mu.Unlock()
		if fit {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-closed:
			return nil // acquiring says so
		}
	}
}

// whileFit makes a context that ends when this replica may no longer lead.
func (f *fitness) whileFit(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if f == nil {
		return ctx, cancel
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cancel = cancel
	if !f.fit() {
		cancel()
	}
	return ctx, cancel
}
