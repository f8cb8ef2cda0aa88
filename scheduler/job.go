package scheduler

import (
	"context"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/quorate/quorate/redlock"
)

const (
	// look is how long a loop sleeps at most before it looks at the clock again: timers stand
	// still while the machine sleeps, and know nothing of a wall clock that is set.
	look = time.Second
	// setBack is how far the clock must have gone back before ticks that have been dealt with
	// are looked at again. Less is the clock being slewed, and waited out.
	setBack = 2 * time.Second
)

// A job is one line of the crontab.
type job struct {
	scheduler *Scheduler
	name      string
	spec      string
	schedule  cron.Schedule
	fn        func(context.Context, Run) error
	settings  jobSettings
	lease     []redlock.LeaseOption

	mu  sync.Mutex
	run *execution // the run in this process, or nil
}

// key is the name of the job's lease.
func (j *job) key() string { return namePrefix + j.name }

// now is the wall clock, and no more: a time that carries Go's monotonic clock would be
// compared by that, which stands still while the machine sleeps.
func (j *job) now() time.Time { return j.scheduler.settings.clock.Now().Round(0) }

func (j *job) current() *execution {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.run
}

// deadline is when a tick can no longer be started.
func (j *job) deadline(tick time.Time) time.Time {
	deadline := tick.Add(j.settings.startDeadline)
	if next := j.schedule.Next(tick); !next.IsZero() && next.Before(deadline) {
		return next
	}
	return deadline
}

// loop waits for one tick after the other and sees what becomes of it. Ticks up to from are
// not its business.
func (j *job) loop(se *session, from time.Time) {
	for {
		due, ok := j.await(se.accepting, from)
		if se.accepting.Err() != nil {
			return
		}
		if !ok { // the clock was set back, since the last look
			from = j.now().Add(-look)
			continue
		}
		tick, passed := newest(j.schedule, due, j.now())
		if passed > 0 {
			j.scheduler.report(Event{Job: j.name, Scheduled: due, Outcome: Missed, Reason: Late, Ticks: passed})
		}
		from = tick
		(&pursuit{job: j, session: se, tick: tick, deadline: j.deadline(tick)}).run(se.accepting)
	}
}

// await waits for the first tick after from. It returns none when ctx ends or the clock is set
// back.
func (j *job) await(ctx context.Context, from time.Time) (due time.Time, ok bool) {
	next := j.schedule.Next(from)
	for {
		now := j.now()
		switch {
		case now.Before(from.Add(-setBack)):
			j.scheduler.settings.logger.Warn("scheduler: the wall clock was set back", "job", j.name, "to", now, "last_tick", from)
			return time.Time{}, false
		case !next.IsZero() && !now.Before(next):
			return next, true
		}
		d := look
		if !next.IsZero() {
			d = min(d, next.Sub(now))
		}
		if sleep(ctx, d) != nil {
			return time.Time{}, false
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
