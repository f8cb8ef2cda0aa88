package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/crontab"
	"github.com/quorate/quorate/redlock"
)

// A Record is a line of a job's ledger: a run, or ticks that were not run.
type Record struct {
	Kind      Kind
	Scheduled time.Time // of the first tick, if there are several; in the job's time zone where this Scheduler knows the job, else in UTC
	Ticks     int       // how many ticks it is about
	Outcome   Outcome
	Reason    Reason
	Started   time.Time     // zero if it was not run
	Ended     time.Time     // zero if it was not completed
	Replica   string        // that ran it
	Token     redlock.Token // of the run
	Attempt   int           // of the run
	Err       string        // of the run, shortened
}

// A Status is what the nodes know of a job.
type Status struct {
	// Paused tells whether the job is paused, and if so, since when and by whom.
	Paused      bool
	PausedSince time.Time
	PausedBy    string
	// Waiting is how many triggers and backfills have not been dealt with.
	Waiting int
	// History is the ledger, oldest first: at most 20 lines, fewer where they are long. Runs that
	// go on come last, with outcome Running.
	History []Record
}

// Status asks the nodes about a job. Any process may ask, whether or not it knows the job. The
// errors are ErrUnknownJob, ErrRegister and those of redlock.Locker.Inspect.
func (s *Scheduler) Status(ctx context.Context, name string) (Status, error) {
	reg, err := s.readRegister(ctx, name)
	if err != nil {
		return Status{}, fmt.Errorf("scheduler: status of job %.64q: %w", name, err)
	}
	c, err := s.readControl(ctx, name)
	if err != nil {
		return Status{}, fmt.Errorf("scheduler: status of job %.64q: %w", name, err)
	}
	st := Status{Waiting: waiting(c.Triggers, reg.Triggers) + waiting(c.Backfills, reg.Backfills)}
	if c.Paused != nil {
		st.Paused, st.PausedSince, st.PausedBy = true, time.UnixMilli(c.Paused.At).UTC(), c.Paused.By
	}
	loc := time.UTC
	if j := s.job(name); j != nil {
		loc = crontab.Location(j.schedule)
	}
	for i := range reg.Ledger {
		st.History = append(st.History, reg.Ledger[i].record(loc))
	}
	for i := range reg.Open {
		e := reg.Open[i].entry(Running, "", time.Time{}, nil)
		st.History = append(st.History, e.record(loc))
	}
	return st, nil
}

// History is that of Status.
func (s *Scheduler) History(ctx context.Context, name string) ([]Record, error) {
	st, err := s.Status(ctx, name)
	return st.History, err
}

// Next are the next n ticks of a job of this Scheduler, without jitter; fewer where there are no
// more. It does not know of pauses. The error is ErrUnknownJob.
func (s *Scheduler) Next(name string, n int) ([]time.Time, error) {
	j := s.job(name)
	if j == nil {
		return nil, fmt.Errorf("scheduler: next ticks of job %.64q: %w; Add it first", name, ErrUnknownJob)
	}
	var ticks []time.Time
	for t := j.now(); len(ticks) < n; ticks = append(ticks, t) {
		if t = j.schedule.Next(t); t.IsZero() {
			break
		}
	}
	return ticks, nil
}

func (e *entry) record(loc *time.Location) Record {
	at := func(ms int64) time.Time {
		if ms == 0 {
			return time.Time{}
		}
		return time.UnixMilli(ms).In(loc)
	}
	return Record{
		Kind: e.Kind, Scheduled: at(e.Tick), Ticks: max(1, e.Ticks), Outcome: e.Outcome, Reason: e.Reason, Started: at(e.Begun),
		Ended: at(e.Ended), Replica: e.By, Token: e.Token, Attempt: e.Attempt, Err: e.Err,
	}
}
