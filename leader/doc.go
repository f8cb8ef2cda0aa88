// Package leader elects one leader among the replicas of a service, on top of the leases of
// package redlock, and numbers each leadership with a term that only ever grows. It does **not**
// guarantee that a former leader has stopped acting: a process that was paused, or a function
// that ignores its context, may act late, when another leads already. What guards against that
// is the resource, which refuses what comes with an older number than it has seen: hand it
// [Term].Number with every write, as a fencing token.
//
//	elector, err := leader.New(locker, "billing")
//	…
//	err = elector.Run(ctx, func(ctx context.Context, term leader.Term) error {
//		// Leads until ctx ends. Return then, soon.
//	})
//
// # A term
//
//	        ctx ends                         ctx ends
//	 ┌──────────────────▶ Run returns ◀─────────────────────┐
//	 │                                                      │
//	candidate ──lease won──▶ publishing ──saved──▶ leading ─┤ context of the term ends:
//	 ▲                           │                  │       │ lease over, Resign, ctx over
//	 │                           │ not saved        │       ▼
//	 │                           │       function   │   winding down
//	 │                           │       returns    │       │ function returns
//	 │                           ▼                  ▼       ▼
//	 └──────standing back────────────── release of the lease
//	       (may take no time)
//
// A candidate waits for the lease of the elector's name, in the order and with the wake-ups of
// redlock. Who has won publishes its identity under the lease, and only then is the function
// called; where that cannot be saved, it is not called and the lease is given back. The lease is
// released after the function has returned and never before, so a function that takes its time
// to wind down delays the successor for as long as the lease lasts.
//
// How the term ended decides how long the elector stands back before it is a candidate again:
//
//   - the function returned nil of its own accord: not at all, and it may win again at once; but
//     its terms do not begin more often than every 32nd of the TTL, lest a function that has
//     nothing to do keeps the nodes busy;
//   - it returned an error of its own accord, or panicked, or the term could not be published: by
//     jittered exponential backoff, from an eighth of the TTL to four times the TTL, until a term
//     has ended otherwise or lasted longer than that;
//   - Resign: WithResignPause;
//   - the lease ended, or the term reached its bound: as if it had returned nil.
//
// # The time rule
//
// A leader may act until
//
//	trusted until = start of the last extension that succeeded + TTL − drift − margin
//
// by a clock that also runs while the machine sleeps, where drift is 1 % of the TTL + 2 ms, and
// the margin is that of WithMargin. No answer of a node is needed to find out that this time is
// over: the term's context ends then and IsLeader is false from then on, with every socket
// stuck. The nodes free the name after start + TTL, by their clocks, at the earliest. So the
// context of the old leader has ended before the successor's function starts, as long as clocks
// run at the same rate but for the drift.
//
// # What goes wrong, and what then happens
//
//	failure                         effect
//	leader crashes                  successor within TTL + 100 ms
//	leader cut off from a quorum    its context ends after at most TTL − drift; then as above
//	leader paused past the TTL      successor after the TTL; on waking, the context ends and IsLeader
//	                                is false; what it writes in between, only the number can stop
//	minority of nodes down or hung  none
//	quorum of nodes down            the leader leads until the end of its validity, then nobody does
//	node restarted empty            none: it does not vote for a while, and is healed by extension
//	lock key deleted at a quorum    the leader's next extension restores it, or the context ends
//	                                because another has it
//	function ignores its context    the lease runs out and another leads; this elector is no candidate
//	                                before the function has returned
//	function returns an error       logged; stands back, another leads
//	function panics                 the same, the error has the stack; the process lives on
//	function calls runtime.Goexit   the lease is released; the goroutine that called Run ends
//	term cannot be published        the function is not called; logged; stands back
//	term reaches its bound          the context ends, the election is open again (WithMaxExtensions)
//	Locker is closed                the context ends, Run returns an error that wraps redlock.ErrClosed
//
// # Names
//
// The lease has the name of the elector, so an election excludes a lock, a job or another
// election of the same name in the same fleet and with the same key prefix. What is saved under
// the lease belongs to the elector: do not Save there.
//
// # Telemetry
//
// A span leader.term covers each term, as a child of the span that Run's context carries, and is
// linked to the redlock.acquire that won the lease; the function's context carries it. It has the
// attributes quorate.name, quorate.token, quorate.leader and quorate.outcome. The metrics have
// quorate.name, and quorate.outcome where that is said:
//
//   - quorate.leader.terms: terms that ended, by outcome;
//   - quorate.leader.term.duration: how long the function led, in seconds, by outcome;
//   - quorate.leader.leading: 1 while this elector leads, else 0; only while Run runs.
//
// Outcomes: stepped_down (the function returned nil), failed (an error), panicked, exited
// (runtime.Goexit), resigned, stopped (Run's context ended), expired, lost, extension_limit,
// closed and released (how the lease ended), unpublished.
package leader
