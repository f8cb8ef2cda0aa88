// Package redlock acquires fenced leases: permission to act on a name until a deadline, granted
// by a majority of N independent Redis masters after the Redlock algorithm, with a token that
// grows with every acquisition of the name.
//
// At any moment at most one client holds a valid lease of a name, if clocks run at nearly the
// same rate and nodes follow the restart rule below. The holder learns of the end no later than
// the lease's validity, even with every socket stuck. What a lease does NOT do is stop a process
// that was paused from acting late: only the resource can, by refusing a token that is lower
// than one it has seen. Pass Lease.Token to it.
//
//	locker, err := redlock.New([]redis.UniversalClient{a, b, c})
//	…
//	defer locker.Close()
//	err = locker.Do(ctx, "sku:42", func(ctx context.Context, lease *redlock.Lease) error {
//		return store.Update(ctx, lease.Token(), …)
//	})
//
// # The life of a lease
//
//	          a quorum accepts, validity left            Release
//	waiting ──────────────────────────────────▶ held ───────────────▶ released
//	  ▲  │                                      ▲  │
//	  │  │ taken, no quorum, quarantined,       │  │ a third of the TTL: extend
//	  └──┘ no validity: withdraw everywhere,    └──┘ (automatically in Do)
//	       wait for a publication or backoff       │
//	                                               ├──▶ expired  its time is up
//	                                               └──▶ lost     the nodes say it is not ours
//
// # The time rule
//
//	validity ends = time before the first node was asked + TTL − drift
//	drift         = 1 % of the TTL + 2 ms
//
// on a clock that is never set and that also counts the time asleep. An extension counts only
// if it was decided before that moment, and moves it. The lease's context ends then, or earlier
// by WithMargin.
//
// # What happens when
//
//	a holder crashes                  its keys run out: the next one follows within the TTL
//	a holder is cut off from nodes    its context ends before anybody else can acquire
//	a holder is paused, or sleeps     its context has ended when it wakes; what it does before
//	                                  it looks is stopped by the token, at the resource
//	a caller's context ends           nothing of its attempt stays on any node that can be reached
//	a minority of nodes is down,      nothing: no step waits for more than a quorum; a node that
//	hung or cut off                   does not answer is left alone until it answers a probe
//	a majority is down                acquiring fails with ErrNoQuorum, leases expire
//	a node restarts without memory    its votes do not count until it is up for the maximum TTL
//	                                  (WithMaxTTL); held leases are put back on it
//	every node restarts, one by one   held leases survive, if each quarantine is waited out
//	a shard of a node that is a       the same as for a node, for its own names
//	Redis Cluster is down
//	a slot moves                      as a node that restarted, for the names in it
//	wall clocks disagree              tokens still grow; an acquisition may take a second round
//	                                  trip
//	a lock key is deleted by hand     the holder loses the lease with its next extension
//
// # Tokens
//
// A token is the wall clock in microseconds, or one more than the highest fence that the nodes
// answered with. So the common acquisition is one round trip, and tokens grow even where clocks
// disagree. A node refuses every acquisition whose token is not above its fence, so that an
// acquire that was delayed in the network cannot bring back a lease that is over. A long lease
// may raise the fence above its own token (Status.Token shows the fence), and so does one that others
// in its process wait for: it reserves tokens, up to 64, and when it is released it is handed on to
// the next of them without a question to the nodes, while less than an eighth of its TTL has passed.
//
// Where nodes lose their memory, the fences go with it, and the clocks are what is left: tokens
// then grow as long as the wall clocks of the clients differ by less than the maximum TTL less what
// one round of questions takes.
//
// # State
//
// A lease carries a small value from holder to holder (State, Save): the next holder is given
// the newest value that any holder was told is saved, if the nodes kept their memory. A node
// that came back empty has forgotten what was saved on it; held leases put it back there, but a
// value that nobody held in the meantime can be lost with it.
//
// # Nodes
//
// Use an odd number of independent masters (5, or 3), without replicas, with
// maxmemory-policy noeviction, Redis 6.2 or newer. Clients may have any options, the default
// ones included; package redlock has its own time limits and does not rely on theirs. The user
// that it logs in as needs no more than docs/acl.md says.
//
// A node may be a whole Redis Cluster, by a *redis.ClusterClient: then the names are spread over its
// shards, and N independent clusters carry as many times more as they have shards (docs/scaling.md).
// Each shard's master is checked as a node is, and a shard that is down, or restarted without memory,
// concerns its own names only. A slot that has moved to another server does not count for the maximum
// TTL, since its locks may not have moved with it. A client that starts afresh cannot know where a slot was:
// take none from a server that has been up, or gone, for less than the maximum TTL, and move slots in
// one cluster at a time. Use no replicas in these clusters either, and cluster-require-full-coverage no.
// A Ring is refused.
package redlock
