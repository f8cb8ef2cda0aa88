package scheduler

import (
	"context"
	"fmt"
	"slices"
	"unicode/utf8"
)

// MaxSteps is how many bytes the steps of a run may have, names and results together. They are
// recorded as JSON, in which they may have half as many again: that bounds how many short ones there
// are, to some 300.
const MaxSteps = 4 << 10

// maxEncodedSteps leaves room in the register for what a takeover adds.
const maxEncodedSteps = MaxSteps * 3 / 2

// A step is a part of a run that was completed.
type step struct {
	Name   string `json:"name"`
	Result []byte `json:"result,omitempty"`
}

// Step does a part of the run, once: fn is called unless a step of this name has been completed in
// this run, by an earlier attempt at it (WithAtLeastOnce) or by an earlier call (WithRetry). When fn
// returns nil, the step is recorded under the run's lease, before Step returns.
//
// Steps of different names may be taken at the same time.
//
// A replica that dies between the end of fn and the record leaves a step that was done and is done
// again: only what fn does idempotently, or behind a gate with Run.Token, happens once.
//
// fn is given the run's context. The errors are fn's own; the cause of the run's context, and then
// fn is not called; ErrSteps for a step that has no name, or one that is not UTF-8, or one step too
// many; and those of
// redlock.Lease.Save when the step could not be recorded. After any of them, return.
func (r Run) Step(name string, fn func(ctx context.Context) error) error {
	_, err := r.StepResult(name, func(ctx context.Context) ([]byte, error) { return nil, fn(ctx) })
	return err
}

// StepResult is Step for a part that has a result, which is recorded with the step. It gives the
// recorded one if the step has been completed before.
func (r Run) StepResult(name string, fn func(ctx context.Context) ([]byte, error)) ([]byte, error) {
	x := r.execution
	if x == nil {
		return fn(context.Background()) // a test of the function, without a Scheduler
	}
	if name == "" {
		return nil, fmt.Errorf("scheduler: job %q: %w: it has no name", x.Job, ErrSteps)
	}
	if !utf8.ValidString(name) { // it would not be found on record again
		return nil, fmt.Errorf("scheduler: job %q: %w: its name %q is not UTF-8", x.Job, ErrSteps, name)
	}
	if s, done := x.step(name); done {
		return s.Result, nil
	}
	if x.ctx.Err() != nil {
		return nil, fmt.Errorf("scheduler: job %q: step %q: %w", x.Job, name, context.Cause(x.ctx))
	}
	result, err := fn(x.ctx)
	if err != nil {
		return nil, err
	}
	if err := x.record(step{Name: name, Result: slices.Clone(result)}); err != nil {
		return nil, fmt.Errorf("scheduler: job %q: step %q was done, and could not be recorded: %w", x.Job, name, err)
	}
	return result, nil
}

// Steps are the names of the steps that have been completed, in that order.
func (r Run) Steps() []string {
	if r.execution == nil {
		return nil
	}
	x := r.execution
	x.mu.Lock()
	defer x.mu.Unlock()
	names := make([]string, 0, len(x.open.Steps))
	for _, s := range x.open.Steps {
		names = append(names, s.Name)
	}
	return names
}

func (x *execution) step(name string) (step, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if i := slices.IndexFunc(x.open.Steps, func(s step) bool { return s.Name == name }); i >= 0 {
		return x.open.Steps[i], true
	}
	return step{}, false
}

// record saves that a step was completed. One at a time, or an earlier list could overwrite a later
// one.
func (x *execution) record(s step) error {
	x.saving.Lock()
	defer x.saving.Unlock()
	x.mu.Lock()
	if x.over {
		x.mu.Unlock()
		return fmt.Errorf("%w: the run is over", ErrSteps)
	}
	steps := append(slices.Clone(x.open.Steps), s)
	size := 0
	for _, s := range steps {
		size += len(s.Name) + len(s.Result)
	}
	if size > MaxSteps {
		x.mu.Unlock()
		return fmt.Errorf("%w: the steps have %d bytes, the limit is %d; keep results elsewhere and record references", ErrSteps, size, MaxSteps)
	}
	state := encode(steps)
	if len(state) > maxEncodedSteps {
		x.mu.Unlock()
		return fmt.Errorf("%w: the steps have %d bytes as JSON, the limit is %d; have fewer, or record references", ErrSteps, len(state), maxEncodedSteps)
	}
	if x.job.held() {
		reg := x.reg.clone()
		reg.find(&x.open).Steps = steps
		state = reg.encode()
	}
	x.mu.Unlock()
	if err := x.lease.Save(x.ctx, state); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.open.Steps = steps
	if x.job.held() {
		x.reg.find(&x.open).Steps = steps
	}
	return nil
}

// loadSteps finds the steps that an earlier attempt has completed, where they are kept under the
// run's own lease.
func (x *execution) loadSteps() error {
	if x.job.held() || x.lease.State() == nil {
		return nil
	}
	var steps []step
	if err := decode(x.lease.State(), &steps); err != nil {
		return fmt.Errorf("scheduler: job %q: the steps of the run, under the name %q: %w", x.Job, x.lease.Name(), err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.open.Steps = steps
	return nil
}
