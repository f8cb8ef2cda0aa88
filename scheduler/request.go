package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/crontab"
	"github.com/quorate/quorate/redlock"
)

// maxBackfill is how many ticks one backfill has at most.
const maxBackfill = 10_000

// Pause has no replica start a tick of the job any more, until Resume. Ticks that come due
// meanwhile are missed, with reason Paused, also after Resume. A run that goes on is left alone,
// and is taken over if its replica dies; Trigger and Backfill work all the same. To pause a job that is paused changes nothing.
//
// Any process with a Scheduler on the same fleet may call it, whether or not it knows the job.
// When it returns nil, a majority of the nodes has it on record; each replica that can reach
// the nodes heeds it within a second.
//
// Errors: ErrUnknownJob; ErrRegister; those of redlock.Locker.Acquire and redlock.Lease.Save, such as
// redlock.ErrNoQuorum: then call it again, which does no harm.
func (s *Scheduler) Pause(ctx context.Context, name string) error {
	return s.ask(ctx, "pause", name, func(c *control, _ *register) (bool, error) { return c.pause(s.now(), s.settings.identity), nil })
}

// Resume ends a pause. It is otherwise as Pause.
func (s *Scheduler) Resume(ctx context.Context, name string) error {
	return s.ask(ctx, "resume", name, func(c *control, _ *register) (bool, error) { return c.resume(s.now()), nil })
}

// Trigger has the job run once, now, by whichever replica knows it and comes first: within a
// second, or as soon as a run that goes on has ended unless WithOverlap allows more than one.
// It is otherwise as Pause; ErrTooManyRequests when 32 wait already. After an error the trigger may be on
// record all the same: History tells.
func (s *Scheduler) Trigger(ctx context.Context, name string) error {
	return s.ask(ctx, "trigger", name, func(c *control, reg *register) (bool, error) {
		return true, c.trigger(reg, s.now(), s.settings.identity)
	})
}

// Backfill has the job run for each tick of its schedule in [from, to], one after the other,
// oldest first, whether or not it was run for them before, and each once. Ticks that come due go
// first. It is otherwise as Trigger. Error ErrInvalidOption: the range is empty, reaches into the
// future, or has more than 10,000 ticks as far as this Scheduler knows the job.
func (s *Scheduler) Backfill(ctx context.Context, name string, from, to time.Time) error {
	now := s.now()
	err := func() error {
		switch {
		case from.IsZero() || to.IsZero() || to.Before(from):
			return fmt.Errorf("%w: the range from %v to %v is empty", ErrInvalidOption, from, to)
		case to.After(now):
			return fmt.Errorf("%w: the range ends at %v, in the future; ticks that have yet to come due are run then", ErrInvalidOption, to)
		}
		if j := s.job(name); j != nil {
			if n := len(crontab.Last(j.schedule, from.Add(-time.Millisecond), to, maxBackfill+1)); n > maxBackfill {
				return fmt.Errorf("%w: the range has more than %d ticks; fill it in parts", ErrInvalidOption, maxBackfill)
			}
		}
		return nil
	}()
	if err != nil {
		return fmt.Errorf("scheduler: backfill job %.64q: %w", name, err)
	}
	return s.ask(ctx, "backfill", name, func(c *control, reg *register) (bool, error) {
		return true, c.fill(reg, now, from, to, s.settings.identity)
	})
}

func (s *Scheduler) now() time.Time { return s.settings.clock.Now().Round(0) }

// ask changes what people ask of a job, and rings the bell.
func (s *Scheduler) ask(ctx context.Context, what, name string, change func(*control, *register) (bool, error)) error {
	err := s.askFor(ctx, name, change)
	if err != nil {
		return fmt.Errorf("scheduler: %s job %.64q: %w", what, name, err)
	}
	return nil
}

func (s *Scheduler) askFor(ctx context.Context, name string, change func(*control, *register) (bool, error)) error {
	reg, err := s.readRegister(ctx, name)
	if err != nil {
		return err
	}
	lease, err := s.locker.Acquire(ctx, controlPrefix+name)
	if err != nil {
		return err
	}
	defer giveBack(lease)
	c, err := readControl(lease.State())
	if err != nil {
		return err
	}
	c.prune(reg, s.now())
	changed, err := change(&c, reg)
	if err != nil {
		return err
	}
	if changed {
		if err := lease.Save(ctx, c.encode()); err != nil {
			return err
		}
	}
	// Also where nothing changed: the last one to ask may have failed to ring.
	if err := s.ring(ctx, name); err != nil {
		return fmt.Errorf("it is on record, but not all replicas could be told: %w", err)
	}
	return nil
}

// readRegister looks at the register of a job that this Scheduler or the nodes must know.
func (s *Scheduler) readRegister(ctx context.Context, name string) (*register, error) {
	status, err := s.locker.Inspect(ctx, JobPrefix+name)
	if err != nil {
		return nil, err
	}
	if status.State == nil && s.job(name) == nil {
		return nil, fmt.Errorf("%w; the name is that which replicas give to Add, and they must have run within the time that nodes remember (redlock.WithFenceTTL)", ErrUnknownJob)
	}
	reg, err := readRegister(status.State)
	return &reg, err
}

// readControl looks at what people ask of a job.
func (s *Scheduler) readControl(ctx context.Context, name string) (control, error) {
	status, err := s.locker.Inspect(ctx, controlPrefix+name)
	if err != nil {
		return control{}, err
	}
	return readControl(status.State)
}

// keepControl has the nodes remember what people ask of a job.
func (s *Scheduler) keepControl(ctx context.Context, j *job) {
	c := j.asked()
	if c.Version == 0 {
		return
	}
	lease, err := s.locker.TryAcquire(ctx, controlPrefix+j.name)
	if err == nil {
		defer giveBack(lease)
		if lease.State() == nil { // the nodes have forgotten it
			err = lease.Save(ctx, c.encode())
		}
	}
	switch {
	case err == nil:
	case !errors.Is(err, redlock.ErrTaken):
		s.settings.logger.Debug("scheduler: keep control", "job", j.name, "error", err)
	}
}
