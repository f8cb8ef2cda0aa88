package scheduler

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/quorate/quorate/redlock"
)

// A Run is what a job's function is told of the run it is to do.
type Run struct {
	Job string
	// Scheduled is the time of the tick, in the job's time zone: when the run was due, which may
	// be a while ago. It is the same whichever replica runs the tick.
	Scheduled time.Time
	// Token is the fencing token of the run's lease, higher than that of every run of the job
	// before. Give it to a gate wherever a run that has lost its lease must not write.
	Token redlock.Token
	// Attempt counts the runs of this tick, from 1. It is always 1: a tick is started at most
	// once.
	Attempt int
	// Replica is the identity of the one that runs it: WithIdentity.
	Replica string
}

// An execution is a run in this process.
type execution struct {
	Run
	job   *job
	lease *redlock.Lease
	reg   register // guarded by the job
	over  bool     // the function has returned; guarded by the job
}

// skip settles a tick that comes due during the run, for the whole fleet, and reports whether it
// does: not when the run is over, or has lost its lease, and with it its say.
func (x *execution) skip(tick time.Time) bool {
	x.job.mu.Lock()
	defer x.job.mu.Unlock()
	if x.over || x.lease.Err() != nil {
		return false
	}
	x.reg.Settled.add(tick, x.job.schedule)
	return true
}

// begin runs a tick that has been claimed.
func (j *job) begin(se *session, lease *redlock.Lease, reg register, tick time.Time) {
	x := &execution{
		Run: Run{Job: j.name, Scheduled: tick, Token: lease.Token(), Attempt: reg.Attempt, Replica: reg.By},
		job: j, lease: lease, reg: reg,
	}
	j.mu.Lock()
	j.run = x
	j.mu.Unlock()
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

	start := clock.Elapsed()
	err := call(ctx, j.fn, x.Run)
	e := Event{
		Job: x.Job, Scheduled: x.Scheduled, Ticks: 1, Replica: x.Replica, Token: x.Token, Attempt: x.Attempt,
		Lag: lag, Duration: clock.Elapsed() - start,
	}
	e.Outcome, e.Reason, e.Err = x.judge(err, context.Cause(ctx))
	s.telemetry.ended(ctx, &e)

	j.mu.Lock()
	x.over = true
	x.reg.Completed = x.reg.Started
	state := x.reg.encode()
	j.mu.Unlock()
	x.complete(state)
	finish(span, &e)
	j.release(x.lease)
	j.mu.Lock()
	j.run = nil
	j.mu.Unlock()
	s.report(e)
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

// complete records that the run is over, so that nobody reports it as interrupted, and that the
// ticks which it overlapped are settled.
func (x *execution) complete(state []byte) {
	for try := 0; ; try++ {
		err := x.lease.Save(context.WithoutCancel(x.lease.Context()), state)
		if err == nil {
			return
		}
		if try == 2 || x.lease.Err() != nil {
			x.job.scheduler.settings.logger.Warn("scheduler: the end of a run could not be recorded; it will be reported as interrupted",
				"job", x.Job, "scheduled", x.Scheduled, "token", x.Token, "error", err)
			return
		}
		time.Sleep(firstLook << try)
	}
}

// call runs the function on a goroutine of its own, which it may end.
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
