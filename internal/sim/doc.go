// Package sim is the simulation: several clients and N nodes inside one testing/synctest
// bubble, real go-redis over in-memory connections to nodes that run the
// real Lua, and faults drawn from a seed. Days of service pass in seconds, and the promises are
// checked all the while.
//
// All of it is in tests. A seed is one schedule of faults and operations:
//
//	go test ./internal/sim                     // a few fresh seeds, and every seed that ever failed
//	go test ./internal/sim -seeds 500          // more of them
//	go test ./internal/sim -seed 7 -v          // one again, with its log
//
// One test drives the leases alone, in every way; another what is built on them: an elector, a
// job and guarded sales on every host.
//
// The schedule is drawn from the seed alone; the order in which goroutines run at the same
// instant is not, so a seed that fails rarely may need -count.
package sim
