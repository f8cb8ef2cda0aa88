// Package scheduler runs cron jobs on all replicas of a service, so that each tick of a job is
// run once across the fleet: a singleton cron without a leader. By default a tick is started **at
// most once**, whichever replica crashes, restarts, is cut off or has a wrong clock, while the nodes
// remember the claim (see "How long the register lives"). It does **not** guarantee then
// that every tick is completed: one whose replica dies in mid-run is not run again, unless
// [WithAtLeastOnce] has it taken over. Nor does it
// guarantee that a run stops at once when its lease ends: its context is cancelled, but a
// process that was paused, or a function that ignores its context, may act late, while another
// replica runs the next tick. Only a gate at the resource stops that; give it [Run.Token].
//
//	locker, err := redlock.New(clients)
//	sched, err := scheduler.New(locker)
//	err = sched.Add("nightly-report", "0 2 * * *", func(ctx context.Context, run scheduler.Run) error {
//		return report(ctx, run.Scheduled)
//	})
//	err = sched.Run(ctx) // until ctx ends, then drains
//
// # The register
//
// A job has a lease, "job/" and its name, and its register is the state of that lease: the ticks
// that were settled, the runs that go on with their completed steps, the ledger of what became of
// the last ticks. What is to be done is decided by one function of the register and the time
// (decide.go). Each replica asks it, by the register as it was last seen, whether there may be
// something to do; and who wins the lease asks it again, by the register as it is:
//
//	          a tick comes due, a run may have died, somebody asked for something
//	                                │
//	     ┌────────────▶ ask for the lease ──not now──▶ look at the register, by backoff ◀─┐
//	     │                          │                      │             │                │
//	nobody holds it                 │got it                │             └─ still open ───┤
//	     └──────────────────────────┼──────────────────────┘             │                │
//	                                ▼                              settled by another     │
//	                     decide, by the register                         │                │
//	                       │                  │                          ▼                │
//	              nothing to run         a tick to run               elsewhere            │
//	                       │                  │                                           │
//	                  save what was      save the claim ──no quorum confirms──────────────┘
//	                  missed, and why         │confirmed                  (past the start
//	                       │                  ▼                           deadline: unclaimed)
//	                    release        run the function, step by step
//	                                          │                    └ the replica dies: at most once,
//	                                          ▼                      interrupted; at least once, the
//	                     save what became of it, and release         next attempt, elsewhere
//
// The register is fenced: a replica that pauses between reading and saving cannot save once
// another has had the lease. So no two replicas ever confirm one tick, and each attempt at it has
// a higher token than the one before.
//
// A tick is known by its scheduled time, which is the same on all replicas. A replica whose
// clock is ahead claims a tick early, and the others find it settled when they get there. A
// replica that is started late, or whose clock is set back, finds the same. The register holds a
// set of ticks, not a high-water mark: one replica whose clock is a year ahead runs ticks of
// next year, once, and the others go on with those of today. So while clocks disagree, the ticks
// of a job may start in another order than that of their times.
//
// # What was not run in time
//
// The register also tells what fell due while nobody was there: while the fleet was down, was
// redeployed, or could not reach the nodes. Of these ticks the newest is run, if it is no older
// than an hour, and the others are missed; [WithMisfire] and [WithCatchUp] change that. Nothing
// is run for the time before the job was known, nor, where its spec was changed, before the first
// replica with the new one began.
//
// When a tick is not claimed within [WithStartDeadline], each replica that sees it so says so: in
// the log, the metrics and to the observer, as [Unclaimed]. That is the alarm to wire up. What becomes of
// the tick later is reported then.
//
// Each tick that was not run is in the ledger, with the reason: see [Scheduler.History].
//
// # Many replicas and many jobs
//
// The replicas share out the ticks by a hash of their identities, the job and the tick: one goes for it at
// once, and each other looks, 20 ms later for each that goes before it, whether it was claimed, and if
// not, goes for it. For that a replica says in the bell (see "Control") that it is there, once a minute, and
// when it ends. Those whose sets of jobs differ, as in the middle of a deployment, do not know of each
// other, and ask at the same time; so do two with one identity. The register decides in any case.
//
// A Scheduler has 256 jobs at the nodes at the same time. When more come due at once, the others wait
// in line: first those that it goes for itself, then those that it only looks at.
//
// # Overlap
//
// A tick that comes due while the run of another tick of the job goes on, on whichever replica,
// is missed, with reason [Overlap]; or is queued, or run at the same time, by [WithOverlap]. The
// replica of that run settles it; if that replica dies, the others do, as of any other tick. What
// is run because of Trigger or Backfill makes a tick wait, and then the policy for misfires
// holds.
//
// With [OverlapAllow] each run has a lease of its own, "run/", the job and the tick, and the job's is held only
// while the register is written.
//
// # Attempts and steps
//
// With [WithAtLeastOnce], the run of a replica that dies, or is shut down in mid-run, is taken over
// when its lease has ended: by whichever replica comes first, with the next attempt and a higher
// token. A job of several parts can mark each as a step ([Run.Step]), and a takeover resumes
// behind the last that was completed. A step between whose end and whose record the replica dies
// is done again.
//
// # Control
//
// Pause, Resume, Trigger and Backfill may be called by any process, and need no server: what they
// ask for is the state of a lease "control/" and the job's name, and a bell, "control", says which
// have changed. Replicas are woken by its publication, and look at it every 750 ms in case that was lost.
//
// # Time
//
// When ticks are due is decided by the wall clock, at which every loop looks at least once a
// second, since timers stand still while a machine sleeps. After a sleep, or a step forward,
// what fell due meanwhile is treated as above. After a step back, ticks that come due again are
// looked at again, and the register says that they were settled.
//
// Specs are read as robfig/cron reads them: the day of month and the day of week are both met where
// one is *, and else either suffices. The time zone is UTC unless [WithLocation] or a CRON_TZ in
// the spec says otherwise. Where clocks go forward, a tick at a time that is skipped comes due at the first
// moment after the gap; where they go back, one at a time that is repeated comes due the first
// time: so a daily job is run each day, once. [WithDST] changes that. A spec whose hour is * goes
// by the time that passes: in the hour that is repeated it is run as in any other. Intervals
// (@every) are counted from the Unix epoch, whatever the time zone.
//
// # What fails, and what happens then
//
//	what fails                                  effect
//	replica dies between lease and claim        another runs the tick when the TTL has passed
//	replica dies in a run, at most once         that tick is interrupted, not run again; the next is run elsewhere
//	replica dies in a run, at least once        another takes the tick over, a TTL later
//	replica is cut off in a run                 the run's context ends with the lease; as above
//	replica pauses between lease and claim      its claim is refused
//	a minority of the nodes                     nothing
//	a majority of the nodes                     ticks are unclaimed (no_quorum), and run late or missed when the nodes are back; runs lose their leases
//	a node restarts empty                       nothing, if the other nodes had the claim; see below
//	split vote                                  asked again after some milliseconds, at random
//	two replicas' clocks differ                 ticks are started by the one that is ahead
//	machine sleeps, or all replicas are down    WithMisfire
//	replicas have different specs for a job     ticks of both are run; reported as Mismatch
//	a replica does not know a job               it is run by those that do
//	function panics                             the run has failed with a [PanicError]; the next tick is run
//	function exceeds WithTimeout                its context ends; a TTL later the lease does, and other replicas go on
//	function outlives Run's context             it is waited for, for WithDrainTimeout; then its context ends, and it is waited for
//
// # How long the register lives
//
// For redlock.WithFenceTTL, 24 hours by default, after a replica was last there: those that follow a
// job see to it that its register and its control are not forgotten, however rarely it comes due.
// When all were down for longer, nothing is known of the ticks before, nor of a pause: what fell due
// meanwhile is not caught up with, and a replica whose clock is behind by more than that time could
// run a tick again.
//
// A node that restarts empty has forgotten the register. A claim that reached every node outlives
// any minority of them; one that reached a bare quorum, because the others could not be reached,
// may be lost with a single node of it. Then a replica that still looks at the tick when the
// node counts again (redlock.WithMaxTTL, 10 s), within WithCatchUp or with a clock that is
// behind, may run it a second time. Nodes that keep their data rule that out.
//
// # Telemetry
//
// Each run has a span scheduler.run, linked to the span redlock.acquire of its lease, with
// quorate.job, quorate.kind, quorate.scheduled, quorate.token, quorate.attempt, quorate.outcome,
// quorate.reason, and quorate.label. and the key for each of [WithLabels]. The metrics are
// quorate.scheduler.ticks (by quorate.job, quorate.outcome and quorate.reason),
// quorate.scheduler.start.lag, quorate.scheduler.run.duration and quorate.scheduler.mismatches. A
// tick that was run or missed is counted by one replica; one that was settled elsewhere, or is unclaimed, by
// each that saw it so, and so the sum over all outcomes and replicas is not a number of ticks.
package scheduler
