package scheduler

import (
	"context"
	"log/slog"
	"time"

	"github.com/quorate/quorate/redlock"
)

// An Outcome is what became of a tick.
type Outcome string

// The outcomes. Each is reported by the replica that settled the tick, or ran it; Elsewhere and
// Unclaimed by each replica that saw it so.
const (
	// Ran: the function returned nil.
	Ran Outcome = "ran"
	// Failed: the function returned an error, or the lease ended before it returned.
	Failed Outcome = "failed"
	// Panicked: the function panicked.
	Panicked Outcome = "panicked"
	// Missed: the tick is not run. The reason says why.
	Missed Outcome = "missed"
	// Interrupted: a replica claimed the tick, and its lease has ended without a record that the
	// run was completed. It may have run in part, in full, or not at all. It is not run again, but
	// with WithAtLeastOnce, where this is reported when no attempts are left.
	Interrupted Outcome = "interrupted"
	// Elsewhere: another replica has started the tick, or settled that it is not run.
	Elsewhere Outcome = "elsewhere"
	// Unclaimed: an alarm. The start deadline has passed, and as far as this replica can see nobody
	// has settled the tick. The reason says what kept this one from it. What becomes of it later
	// is reported then, by whoever settles it.
	Unclaimed Outcome = "unclaimed"
	// Mismatch: an alarm, about no tick. Another replica has another spec for the job; ticks of
	// both are run. That is as it should be for the time of a deployment.
	Mismatch Outcome = "mismatch"
	// Running is what History tells of a run that goes on.
	Running Outcome = "running"
)

// A Reason says why a tick was missed or is unclaimed, or why a run failed other than by its own
// error.
type Reason string

// The reasons.
const (
	// Overlap: the run of an earlier tick was still going on.
	Overlap Reason = "overlap"
	// Late: it was too late, by WithStartDeadline, WithMisfire and WithCatchUp: no replica was
	// there, the machine slept, or its clock was set forward.
	Late Reason = "late"
	// Held: the job's lease was held without a sign of a run, as by a replica that crashed, or
	// nobody won a majority.
	Held Reason = "held"
	// NoQuorum: too few nodes could be asked.
	NoQuorum Reason = "no_quorum"
	// Busy: this replica had as many runs as it may have.
	Busy Reason = "busy"
	// Paused: the job was paused.
	Paused Reason = "paused"
	// DST: the clocks of the time zone were changed, and WithDST leaves such a tick out.
	DST Reason = "dst"
	// Unreadable: the register could not be read (ErrRegister).
	Unreadable Reason = "unreadable"

	// Attempts: of Interrupted, all attempts that WithAtLeastOnce allows were made.
	Attempts Reason = "attempts"

	// TimedOut: the run exceeded its timeout.
	TimedOut Reason = "timeout"
	// LeaseEnded: the run's lease ended under it.
	LeaseEnded Reason = "lease_ended"
	// Drained: the run was cancelled by the drain timeout.
	Drained Reason = "drained"
)

// An Event tells what became of a tick, as one replica saw it.
type Event struct {
	Job       string
	Kind      Kind
	Scheduled time.Time // in the job's time zone; the first of several ticks
	Outcome   Outcome
	Reason    Reason // of Missed and Unclaimed, and of some that Failed
	// Ticks is how many ticks the event is about: 1, or for Missed all that were settled at once,
	// 1,000 at most: more are not counted.
	Ticks int
	// Replica is the identity of the one that ran the tick, "" where that is not known.
	Replica  string
	Token    redlock.Token // of the run; 0 if there is none
	Attempt  int           // of the run; 0 if there is none
	Lag      time.Duration // from the scheduled time to the start of the run
	Duration time.Duration // of the run
	Err      error         // of the run, or the last obstacle of a tick that is unclaimed
	Labels   map[string]string
}

// report makes an event known to the metrics, the log and the observer.
func (s *Scheduler) report(e Event) {
	s.telemetry.ticked(&e)
	level, msg := slog.LevelDebug, "scheduler: tick"
	args := []any{"job", e.Job, "scheduled", e.Scheduled, "kind", e.Kind, "outcome", e.Outcome}
	switch e.Outcome {
	case Failed, Panicked:
		level, msg = slog.LevelError, "scheduler: run failed"
		args = append(args, "reason", e.Reason, "token", e.Token, "attempt", e.Attempt, "duration", e.Duration, "error", e.Err)
	case Missed:
		level, msg = slog.LevelWarn, "scheduler: tick missed"
		if e.Reason == Paused || e.Reason == DST { // as it was asked for
			level = slog.LevelInfo
		}
		args = append(args, "reason", e.Reason, "ticks", e.Ticks)
	case Unclaimed:
		level, msg = slog.LevelError, "scheduler: nobody has claimed a tick that is overdue"
		args = append(args, "reason", e.Reason, "error", e.Err)
	case Interrupted:
		level, msg = slog.LevelWarn, "scheduler: a run was never completed; its replica crashed or lost the nodes"
		args = append(args, "replica", e.Replica, "token", e.Token, "attempt", e.Attempt)
	case Mismatch:
		level, msg = slog.LevelWarn, "scheduler: another replica has another spec for this job; deploy the same version everywhere"
	}
	s.settings.logger.Log(context.Background(), level, msg, args...)
	if s.settings.observer != nil {
		s.settings.observer(e)
	}
}
