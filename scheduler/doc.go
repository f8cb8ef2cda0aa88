// Package scheduler runs cron jobs on all replicas of a service, so that each tick of a job is
// run once across the fleet: a singleton cron without a leader. A tick is started **at most
// once**, whichever replica crashes, restarts, is cut off or has a wrong clock, while the nodes
// remember the claim (see "How long the register lives"). It does **not** guarantee
// that every tick is run: one whose replica dies in mid-run is not run again. Nor does it
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
// # The life of a tick
//
// A job has a lease, "job/" and its name, and its register is the state of that lease: the ticks
// that were started, and the last one that was completed. Each replica, by its own clock:
//
//	                       tick is due
//	                            │
//	                            ▼     too late: deadline, or the next tick
//	       ┌──────────▶ ask for the lease ─────────────────────────────────────▶ missed
//	       │                    │                                                  ▲
//	nobody holds it         got it? ──no──▶ read the register, again and again ────┤
//	       └────────────────────┼────────────────┘   │                             │
//	                            │yes                 │ tick is in it               │
//	                            ▼                    ▼                             │
//	             is the tick in the register? ──yes──▶ elsewhere                   │
//	                            │no                                                │
//	                            ▼                                                  │
//	                  save it there ──no quorum confirms──▶ again, while there is time
//	                            │confirmed
//	                            ▼
//	                 run the function ──▶ save "completed" ──▶ release ──▶ ran, failed, panicked
//	                            │
//	                            └ the replica dies: interrupted, as the next to hold the lease finds
//
// The register is fenced: a replica that pauses between reading and saving cannot save once
// another has had the lease. So no two replicas ever confirm one tick.
//
// A tick is known by its scheduled time, which is the same on all replicas. A replica whose
// clock is ahead claims a tick early, and the others find it started when they get there. A
// replica that is started late, or whose clock is set back, finds the same. The register is a
// set of ticks, not a high-water mark: one replica whose clock is a year ahead runs ticks of
// next year, once, and the others go on with those of today. So while clocks disagree, the ticks
// of a job may start in another order than that of their times.
//
// # Overlap
//
// A tick that comes due while the run of another tick of the job goes on, on whichever replica,
// is skipped, and reported as missed with reason [Overlap]. The replica of that run settles it
// in the register; the others watch in case that replica dies, and then take over, if the tick
// can still be started.
//
// # Time
//
// When ticks are due is decided by the wall clock, at which every loop looks at least once a
// second, since timers stand still while a machine sleeps. After a sleep, or a step forward,
// only the newest tick that is due is looked at; those before it are reported as missed with
// reason [Late]. A tick can be started until the next is due, and for [WithStartDeadline] at
// most. After a step back by more than two seconds, ticks that come due again are looked at
// again, and the register says that they were started.
//
// Time zones and daylight saving are those of robfig/cron. A tick at a time that does not exist
// on a day, because clocks go forward, is left out on that day; one at a time that exists twice
// is run twice. A job that must run each day, and once, belongs outside those hours, or into
// UTC, which is the default. Intervals (@every) are counted from the Unix epoch, whatever the
// time zone.
//
// # What fails, and what happens then
//
//	what fails                                  effect
//	replica dies between lease and claim        another runs the tick when the TTL has passed, if it is not too late by then
//	replica dies in a run                       that tick is interrupted, not run again; the next is run elsewhere
//	replica is cut off in a run                 the run's context ends with the lease; as above
//	replica pauses between lease and claim      its claim is refused
//	a minority of the nodes                     nothing
//	a majority of the nodes                     ticks wait until their deadline, then are missed (no_quorum); runs lose their leases
//	a node restarts empty                       nothing, if the other nodes had the claim; see below
//	split vote                                  asked again after some milliseconds, at random
//	two replicas' clocks differ                 ticks are started by the one that is ahead
//	machine sleeps                              the newest tick is run if not too late, the others are missed (late)
//	function panics                             the run has failed with a [PanicError]; the next tick is run
//	function exceeds WithTimeout                its context ends; a TTL later the lease does, and other replicas go on
//	function outlives Run's context             it is waited for, for WithDrainTimeout; then its context ends, and it is waited for
//
// # How long the register lives
//
// For redlock.WithFenceTTL, 24 hours by default, after a replica last asked for the lease. When
// it has gone, nothing is known of ticks before: they could be run again by a replica that still
// looks at them, that is one whose clock is behind by more than that time. For a job that comes
// due more rarely than that, it means no more.
//
// A node that restarts empty has forgotten the register. A claim that reached every node outlives
// any minority of them; one that reached a bare quorum, because the others could not be reached,
// may be lost with a single node of it. Then a replica that still looks at the tick when the
// node counts again (redlock.WithMaxTTL, 10 s), within WithStartDeadline or with a clock that is
// behind, may run it a second time. Nodes that keep their data rule that out.
//
// # Telemetry
//
// Each run has a span scheduler.run, linked to the span redlock.acquire of its lease, with
// quorate.job, quorate.scheduled, quorate.token, quorate.attempt, quorate.outcome and
// quorate.reason. The metrics are quorate.scheduler.ticks (by quorate.job, quorate.outcome and
// quorate.reason), quorate.scheduler.start.lag and quorate.scheduler.run.duration. A tick that
// was run is counted by one replica; elsewhere and missed ticks by each that saw them so, and so
// the sum of those over all replicas is not a number of ticks.
package scheduler
