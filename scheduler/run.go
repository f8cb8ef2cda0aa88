package scheduler

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/quorate/quorate/redlock"
)

// A Kind says why a run is done.
type Kind string

// The kinds.
const (
	Scheduled  Kind = "scheduled"  // a tick of the schedule
	Triggered  Kind = "triggered"  // Trigger asked for it
	Backfilled Kind = "backfilled" // Backfill asked for it
)

// A Run is what a job's function is told of the run it is to do.
type Run struct {
	Job  string
	Kind Kind
	// Scheduled is the time of the tick, in the job's time zone: when the run was due, which may
	// be a while ago. It is the same whichever replica runs the tick. For Triggered, it is when
	// that was asked for.
	Scheduled time.Time
	// Token is the fencing token of the run, higher than that of every run of the job that was
	// begun before, also of an earlier attempt at this one. Give it to a gate wherever a run that
	// has lost its lease must not write.
	Token redlock.Token
	// Attempt counts the runs of this tick in the fleet, from 1. It is always 1 unless
	// WithAtLeastOnce allows more.
	Attempt int
	// Retry counts the calls of the function in this run, from 0: see WithRetry.
	Retry int
	// Replica is the identity of the one that runs it: WithIdentity.
	Replica string
	// Labels are those of the job: WithLabels. Do not change them.
	Labels map[string]string

	execution *execution // nil in a Run that a test has made
}

// An execution is a run in this process.
type execution struct {
	Run
	job   *job
	lease *redlock.Lease // of the run: the job's own, unless runs may overlap
	open  open
	ctx   context.Context

	saving sync.Mutex // held while the register, or the steps, are saved under the lease
	mu     sync.Mutex
	reg    register // where the run holds the job's lease
	over   bool     // the function has returned
}

// register is a copy of the register as this run has it.
func (x *execution) register() register {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.reg.clone()
}

// overlap deals with a tick that comes due during the run, for the whole fleet, and gives what is
// settled by that: nothing when the run is over, or has lost its lease, and with it its say.
func (x *execution) overlap(tick, from time.Time) []entry {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over || x.lease.Err() != nil {
		return nil
	}
	return x.job.overlap(&x.reg, &x.open, tick, from)
}

// start runs what has been claimed, under a lease.
func (j *job) start(se *session, lease *redlock.Lease, reg register, run open) {
	x := &execution{
		Run: Run{
			Job: j.name, Kind: run.Kind, Scheduled: j.local(run.Tick), Token: run.Token, Attempt: run.Attempt,
			Replica: run.By, Labels: j.settings.labels,
		},
		job: j, lease: lease, reg: reg.clone(), open: run,
	}
	x.execution = x
	j.enter(x)
	se.runs.Go(func() { x.run(se.running) })
}

// run calls the function, records that it has ended, and releases the lease.
func (x *execution) run(running context.Context) {
	j, s := x.job, x.job.scheduler
	clock := s.settings.clock
	lag := j.now().Sub(x.Scheduled)

	ctx, cancel := context.WithCancelCause(x.lease.Context())
	defer cancel(nil)
	stop := context.AfterFunc(running, func() { cancel(context.Cause(running)) })
	defer stop()
	ctx, cancelTimeout := context.WithTimeoutCause(ctx, j.settings.timeout, ErrTimeout)
	defer cancelTimeout()
	ctx, span := s.telemetry.start(ctx, &x.Run, x.lease.SpanContext())
	s.telemetry.started(ctx, x.Job, lag)
	x.ctx = ctx

	start := clock.Elapsed()
	err := x.loadSteps()
	if err == nil {
		err = x.call(ctx)
	}
	e := Event{
		Job: x.Job, Kind: x.Kind, Scheduled: x.Scheduled, Ticks: 1, Replica: x.Replica, Token: x.Token, Attempt: x.Attempt,
		Lag: lag, Duration: clock.Elapsed() - start, Labels: x.Labels,
	}
	e.Outcome, e.Reason, e.Err = x.judge(err, context.Cause(ctx))
	s.telemetry.ended(ctx, &e)

	line := x.open.entry(e.Outcome, e.Reason, j.now(), e.Err)
	// A run that was cut short is for another to take over.
	handOver := (e.Reason == Drained || e.Reason == LeaseEnded) && x.open.Attempt < j.settings.maxAttempts
	left := x.complete(line, handOver)
	finish(span, &e)
	j.release(x.lease)
	j.leave(x, left)
	s.report(e)
}

// call calls the function, and again for as long as the policy for retries says.
func (x *execution) call(ctx context.Context) error {
	j := x.job
	run := x.Run
	try := func() error {
		err := call(ctx, j.fn, run)
		run.Retry++
		var panicked *PanicError
		if errors.As(err, &panicked) {
			return backoff.Permanent(err)
		}
		return err
	}
	var policy backoff.BackOff = &backoff.StopBackOff{}
	if j.settings.retry != nil {
		if p := j.settings.retry(); p != nil {
			policy = p
		}
	}
	var last error
	err := backoff.RetryNotify(func() error {
		last = try()
		return last
	}, backoff.WithContext(policy, ctx), func(err error, wait time.Duration) {
		j.scheduler.settings.logger.WarnContext(ctx, "scheduler: run failed, trying again", "job", x.Job, "scheduled", x.Scheduled,
			"retry", run.Retry, "wait", wait, "error", err)
	})
	if err != nil && ctx.Err() != nil && last != nil && !errors.Is(err, last) {
		err = last // rather than that the context ended while it waited
	}
	var permanent *backoff.PermanentError
	if errors.As(err, &permanent) {
		err = permanent.Err
	}
	return err
}

// judge says what became of a run from what its function returned and what ended its context.
func (x *execution) judge(err, cause error) (Outcome, Reason, error) {
	loss := x.lease.Err()
	var panicked *PanicError
	switch {
	case errors.As(err, &panicked):
		return Panicked, "", err
	case loss != nil:
		if !errors.Is(err, loss) {
			err = errors.Join(err, loss)
		}
		return Failed, LeaseEnded, err // also where the function returned nil: part of it was not covered
	case err == nil:
		return Ran, "", nil
	case errors.Is(cause, ErrTimeout):
		return Failed, TimedOut, because(err, cause)
	case errors.Is(cause, ErrDrainTimeout):
		return Failed, Drained, because(err, cause)
	}
	return Failed, "", err
}

// because adds the cause to an error that follows from it.
func because(err, cause error) error {
	if errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", cause, err)
}

// complete records that the run is over, so that nobody reports it as interrupted or takes it
// over, and gives the register as it left it, if it could.
func (x *execution) complete(line entry, handOver bool) *register {
	x.saving.Lock()
	defer x.saving.Unlock()
	write := func(reg *register) {
		if !handOver {
			reg.end(&x.open) // while the run's lease lasts, it can be nobody else's
		}
		reg.note(line)
	}
	x.mu.Lock()
	x.over = true
	if x.job.held() {
		write(&x.reg)
	}
	reg := x.reg
	x.mu.Unlock()

	// A quorum that is away for a moment does not have a run that was completed done again.
	clock := x.job.scheduler.settings.clock
	var err error
	for wait, start := firstLook, clock.Elapsed(); ; wait = min(2*wait, lastLook) {
		if x.job.held() {
			err = x.lease.Save(context.WithoutCancel(x.lease.Context()), reg.encode())
		} else {
			reg, err = x.job.rewrite(x.lease.Context(), write)
		}
		if err == nil {
			return &reg
		}
		if x.lease.Err() != nil || clock.Elapsed()-start >= x.job.settings.ttl {
			break
		}
		time.Sleep(wait)
	}
	x.job.scheduler.settings.logger.Warn("scheduler: the end of a run could not be recorded; another replica will find it interrupted",
		"job", x.Job, "scheduled", x.Scheduled, "token", x.Token, "error", err)
	return nil
}

// rewrite changes the register under the job's lease, and gives what it is then.
func (j *job) rewrite(ctx context.Context, change func(*register)) (register, error) {
	lease, err := j.scheduler.locker.Acquire(ctx, j.key(), j.brief()...)
	if err != nil {
		return register{}, err
	}
	defer j.release(lease)
	reg, err := readRegister(lease.State())
	if err != nil {
		return register{}, err
	}
	change(&reg)
	return reg, lease.Save(ctx, reg.encode())
}

// call calls the function on a goroutine of its own, which it may end.
func call(ctx context.Context, fn func(context.Context, Run) error, run Run) (err error) {
	done := make(chan struct{})
	go func() {
		returned := false
		defer close(done)
		defer func() {
			if v := recover(); v != nil || !returned {
				err = &PanicError{Value: v, Stack: debug.Stack()}
			}
		}()
		err = fn(ctx, run)
		returned = true
	}()
	<-done
	return err
}
