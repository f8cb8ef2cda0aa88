// Package sim is the simulation: several clients and N nodes inside one testing/synctest
// bubble, real go-redis over in-memory connections to nodes that run the real Lua, and faults
// drawn from a seed. Days of service pass in seconds, and the promises are checked at every
// step.
//
// All of it is in tests. A seed is one schedule of faults and operations:
//
//	go test ./internal/sim                        // a few fresh seeds, and every seed that ever failed
//	go test ./internal/sim -seeds 500             // more of them
//	go test ./internal/sim -for 10m -workers 2    // as many as fit, in two processes
//	go test ./internal/sim -seed 7 -v             // one again, with its log
//
// # Layers
//
// A world is a fleet of nodes with its hosts. What runs on the hosts is a list of [layer]s, each
// with its operations, its invariants, and its words in the report: leases of many kinds
// (leases_test.go), electors (leaders_test.go), singleton jobs (ticks_test.go), guarded sales
// (guards_test.go). A package that is built on the lease joins by adding its own.
//
// # What is checked
//
// At each grant: nobody else holds the name, and the token is higher than all before; the state
// is the last that was saved. At every operation, and twice a simulated second: at most one
// lease of a name is valid, no context outlives its validity, no node keeps a lock longer than
// its TTL, or one that it has already released. When the faults are over: no lock is left, every
// host can have every name, at once. At most one leader, with growing terms, who is given what was
// saved last; whoever watches is told of terms that began, in order, and of vacancies that were; an
// elector's events are those of its terms. At most one run per tick; no stale sale admitted. Then come the drills (drills_test.go), which strike one fault each
// and ask for one promise of liveness, as nobody could among random faults. At the end no goroutine
// is left.
//
// # What is struck
//
// Nodes: crash, crash with loss of memory, hang, slow answers, slow requests (which arrive late,
// out of order, long after the client gave up), doubled requests (replayed up to half a minute
// later), clocks that run wrong within the drift or are set back. Links: partitions of a node, of
// a host, and of a host from a node. Hosts: clocks that are set, and machines that sleep. Holders
// that forget to release, and sellers that wake up long after their lease is over. Operators who free
// names by hand: whose lease they break is the one to whom less is promised (breaks_test.go).
//
// The schedule is drawn from the seed alone; the order in which goroutines run at the same
// instant is not, so a seed that fails rarely may need -count.
package sim
