package scheduler

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/quorate/quorate/internal/crontab"
	"github.com/quorate/quorate/redlock"
)

// Singleton is for those who have a robfig/cron already: a wrapper that runs a job of theirs once
// across the fleet each time it comes due.
//
//	c := cron.New(cron.WithChain(scheduler.Singleton(sched, "report")))
//	c.AddJob("0 2 * * *", report)
//
// Each job needs a wrapper with a name of its own, as the argument of cron.WithChain where it is the
// only one, and else by cron.NewChain(…).Then(job); a second job in the same wrapper is not run, and
// the log says so. s must not have a job of that name, and need not Run.
//
// cron says when the job is due, on each replica by its own clock, and the tick is that time in
// whole seconds: all replicas must have the same specs, in the same time zone. It is not for @every, which cron
// counts from the start of each replica: each then has ticks of its own. What is due while
// nobody is there is not caught up with, since cron does not tell; overlapping is skipped; and a
// replica that asks later than WithStartDeadline after the tick finds nothing to do. Otherwise a
// tick is as safe as one of Add, and Pause and History know the job. Where that is not enough, use
// Add. A panic of the job ends the run, and not the process.
func Singleton(s *Scheduler, name string, opts ...JobOption) cron.JobWrapper {
	var taken atomic.Bool
	js, err := s.settings.job.with(opts)
	if err == nil {
		err = checkName(name)
	}
	js.misfire, js.overlap, js.jitter = MisfireSkip(), OverlapSkip, 0
	return func(wrapped cron.Job) cron.Job {
		failure := err
		if failure == nil && taken.Swap(true) {
			failure = ErrDuplicateJob
		}
		if failure == nil {
			failure = s.check(makeJob(s, name, nil, js))
		}
		return &singleton{scheduler: s, name: name, wrapped: wrapped, settings: js, err: failure}
	}
}

// A singleton is a job of robfig/cron's that the fleet runs once.
type singleton struct {
	scheduler *Scheduler
	name      string
	wrapped   cron.Job
	settings  jobSettings
	err       error // why it cannot be run
}

// Run is called by cron when the job is due, and returns when that has been dealt with.
func (o *singleton) Run() {
	s := o.scheduler
	if o.err != nil {
		s.settings.logger.Error("scheduler: a job of cron's is not run; each needs a Singleton of its own, with a valid name and options",
			"job", o.name, "error", o.err)
		return
	}
	tick := s.now().Truncate(time.Second)
	j := makeJob(s, o.name, func(context.Context, Run) error {
		o.wrapped.Run()
		return nil
	}, o.settings)
	j.schedule, j.fingerprint = crontab.At(tick), "singleton"

	deadline := tick.Add(o.settings.startDeadline)
	se := newSession(context.Background())
	defer se.end()
	c, err := s.readControl(se.accepting, o.name)
	for err != nil && s.now().Before(deadline) && !errors.Is(err, redlock.ErrClosed) {
		time.Sleep(firstLook)
		c, err = s.readControl(se.accepting, o.name)
	}
	c.Triggers, c.Backfills = nil, nil // cron decides when it is run
	j.told(c)
	l := newLoop(j, se, tick.Add(-time.Millisecond))
	for l.seen.Before(tick) && se.accepting.Err() == nil {
		_ = sleep(se.accepting, l.step(se.accepting))
	}
	se.runs.Wait()
}
