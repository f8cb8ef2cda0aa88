package scheduler

import (
	"time"

	"github.com/quorate/quorate/redlock"
)

// An Outcome is what became of a tick.
type Outcome string

// The outcomes. Ran, Failed and Panicked are reported by the replica that ran the tick;
// Elsewhere and Missed by each replica that saw it so; Interrupted by the next one to hold the
// job's lease.
const (
	// Ran: the function returned nil.
	Ran Outcome = "ran"
	// Failed: the function returned an error, or the lease ended before it returned.
	Failed Outcome = "failed"
	// Panicked: the function panicked.
	Panicked Outcome = "panicked"
	// Elsewhere: another replica has started the tick, or skipped it for good.
	Elsewhere Outcome = "elsewhere"
	// Missed: the time in which the tick could have been started passed, and this replica has
	// not seen that anybody did. The reason says why.
	Missed Outcome = "missed"
	// Interrupted: a replica claimed the tick, and its lease has ended without a record that the
	// run was completed. It may have run in part, in full, or not at all; it is not run again.
	Interrupted Outcome = "interrupted"
)

// A Reason says why a tick was missed, or a run failed other than by its own error.
type Reason string

// The reasons. The first five are of ticks that were missed, the others of runs that failed.
const (
	// Overlap: the run of an earlier tick was still going on.
	Overlap Reason = "overlap"
	// Late: this replica looked at the clock only after a later tick was due, or after the start
	// deadline: the machine slept, or its clock was set forward.
	Late Reason = "late"
	// Held: the job's lease was held until the end without a sign of a run, as by a replica that
	// crashed, or nobody won a majority.
	Held Reason = "held"
	// NoQuorum: too few nodes could be asked.
	NoQuorum Reason = "no_quorum"
	// Unreadable: the register could not be read (ErrRegister).
	Unreadable Reason = "unreadable"

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
	Scheduled time.Time // in the job's time zone; the first of several ticks
	Outcome   Outcome
	Reason    Reason // of Missed, and of some that Failed
	// Ticks is how many ticks the event is about: 1, or for Missed with Late all that were
	// passed over. More than 10,000 are not counted further.
	Ticks int
	// Replica is the identity of the one that ran the tick, "" where that is not known.
	Replica  string
	Token    redlock.Token // of the run; 0 if there is none
	Attempt  int           // of the run; 0 if there is none
	Lag      time.Duration // from the scheduled time to the start of the run
	Duration time.Duration // of the run
	Err      error         // of the run, or the last obstacle of a tick that was missed
}

// report makes an event known to the metrics, the log and the observer.
func (s *Scheduler) report(e Event) {
	s.telemetry.ticked(&e)
	args := []any{"job", e.Job, "scheduled", e.Scheduled}
	switch e.Outcome {
	case Failed, Panicked:
		s.settings.logger.Error("scheduler: run failed", append(args, "outcome", e.Outcome, "reason", e.Reason,
			"token", e.Token, "attempt", e.Attempt, "duration", e.Duration, "error", e.Err)...)
	case Missed:
		s.settings.logger.Warn("scheduler: tick missed", append(args, "reason", e.Reason, "ticks", e.Ticks, "error", e.Err)...)
	case Interrupted:
		s.settings.logger.Warn("scheduler: a run was never completed; its replica crashed or lost the nodes",
			append(args, "replica", e.Replica, "token", e.Token, "attempt", e.Attempt)...)
	default:
		s.settings.logger.Debug("scheduler: tick", append(args, "outcome", e.Outcome)...)
	}
	if s.settings.observer != nil {
		s.settings.observer(e)
	}
}
