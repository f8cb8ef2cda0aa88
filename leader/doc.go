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
//	        not fit: waits
//	            │
//	        candidate ──ctx ends──▶ Run returns
//	          │   ▲
//	lease won │   └───────── standing back, which may take no time ◀────────┐
//	          ▼                                                             │
//	        scruples ──another is the heir, or no longer fit────▶ release of the lease
//	          │                                                     ▲       ▲
//	          ▼                                                     │       │
//	        elected ──not on record─────────────────────────────────┘       │
//	          │                                                             │
//	on record │                                                             │
//	          ▼                                                             │
//	        leading ──function returns──────────────────────────────────────┤
//	          │                                                             │
//	          │ context ends: lease over, Resign, Transfer,                 │
//	          ▼ unhealthy, bound of the term, ctx over                      │
//	        winding down ──function returns─────────────────────────────────┤
//	          │                                                             │
//	          ▼ WithStopGrace is over: reported                             │
//	        stuck ──function returns────────────────────────────────────────┘
//
// A candidate waits for the lease of the elector's name, in the order and with the wake-ups of
// redlock; one that does not come first (WithPriority) watches for a vacancy instead. It stands only while
// it is fit: healthy (WithHealthCheck) and eligible (WithEligible). Who has won puts its identity on
// record under the lease, and only then is the function called; where that cannot be saved, it is
// not called and the lease is given back. The lease is released after the function has returned and
// never before, so a function that takes its time to wind down delays the successor; one that ignores
// its context for longer than WithStopGrace is reported, and the office stays its own for as long as the
// lease lasts.
//
// How the term ended decides how long the elector stands back before it is a candidate again:
//
//   - the function returned nil of its own accord: not at all, and it may win again at once; but
//     its terms do not begin more often than every 32nd of the TTL, lest a function that has
//     nothing to do keeps the nodes busy;
//   - it returned an error of its own accord, or panicked, or the term could not be put on record, or
//     the health check failed: by jittered exponential backoff, from an eighth of the TTL to four times
//     the TTL, until a term has ended otherwise or lasted longer than that;
//   - Resign and Transfer: WithResignPause, or until it is named as the heir itself;
//   - the lease ended, or the term reached its bound (WithMaxTerm): as if it had returned nil.
//
// # Handing over
//
// What a leader saves ([Term].Save) is given to the next ([Term].State), and on from there, also by
// leaders who save nothing. It is fenced: a leader that was overtaken cannot change it. When a leader's
// context ends, the next starts as soon as its function has returned and the nodes have answered a few
// times: some milliseconds on a local network. [Elector.Resign] lets another win, and
// [Elector.Transfer] a certain one.
//
// [Elector.Watch] tells any process of each change; see there for what that promises. [Elector.Leader]
// asks once.
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
//	leader crashes                  successor within TTL + 100 ms, and a step for each WithPriority
//	leader cut off from a quorum    its context ends after at most TTL − drift; then as above
//	leader paused past the TTL      successor after the TTL; on waking, the context ends and IsLeader
//	                                is false; what it writes in between, only the number can stop
//	minority of nodes down or hung  none
//	quorum of nodes down            the leader leads until the end of its validity, then nobody does
//	node restarted empty            none: it does not vote for a while, and is healed by extension
//	a quorum restarted empty        nobody leads until they vote again; what was saved may be lost
//	lock key deleted at a minority  the leader's next extension restores it
//	lock key deleted at a quorum    another may be elected at once; the leader's next extension, within
//	                                a third of the TTL, restores it or ends the context
//	leader not healthy              its context ends, another leads; no candidate until it is well
//	health check hangs              not healthy; holds up nothing but the end of Run
//	function ignores its context    reported (log, metric, WithObserver, Healthz). The lease is not
//	                                released: nobody else leads until it runs out, at the latest after
//	                                WithMaxTerm, WithStopGrace and a TTL or two. This elector is no
//	                                candidate, and Run does not return, before the function has
//	function returns an error       logged; stands back, another leads
//	function panics                 the same, the error has the stack; the process lives on
//	function calls runtime.Goexit   the lease is released; the goroutine that called Run ends
//	term cannot be put on record    the function is not called; logged; stands back
//	term reaches its bound          the context ends, the election is open again (WithMaxTerm)
//	heir dead, unfit or unknown     the others stand back for a quarter of the TTL, then one leads
//	save fails                      the next leader finds either value
//	who watches is cut off          it is told nothing, and what is new when the nodes answer again
//	Locker is closed                the context ends, Run returns an error that wraps redlock.ErrClosed
//
// # Names
//
// The lease has the name of the elector, so an election excludes a lock, a job or another
// election of the same name in the same fleet and with the same key prefix. What is saved under
// the lease belongs to the elector, which keeps its record there: use [Term].Save.
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
//   - quorate.leader.leading: 1 while this elector leads, else 0; only while Run runs;
//   - quorate.leader.stuck: 1 while a function has not returned within WithStopGrace, else 0; only while
//     Run runs, which it does as long as the function;
//   - quorate.leader.stuck.terms: terms with such a function;
//   - quorate.leader.stood_back: leases that were won and given back without a term.
//
// Outcomes: stepped_down (the function returned nil), failed (an error), panicked, exited
// (runtime.Goexit), resigned, transferred, unhealthy, term_limit, stopped (Run's context ended), expired,
// lost, extension_limit, closed and released (how the lease ended), unpublished.
package leader
