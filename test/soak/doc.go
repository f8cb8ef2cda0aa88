// Soak runs real client processes against real redis-servers under a seeded schedule of faults,
// records from outside of the library what each client was told, and checks the records.
//
// Five servers and eight processes by default. The processes are this binary, started again.
// Each of them takes locks and saves state under them, sells stock through guards, is a candidate
// of an election and runs the ticks of two jobs, all at once, while servers and processes are
// killed, frozen and restarted, links are cut, held and slowed, and clocks are set and run fast.
//
//	go run ./soak -for 10m                  # within the assumptions: any violation fails it
//	go run ./soak -for 10m -profile beyond  # beyond them: only the gate has to hold
//	go run ./soak -lib redsync -for 2m      # another library, the part with the locks
//	go run ./soak -peers -for 2m            # all of them, and a table
//	go run ./soak -seed 7                   # the schedule of faults of that seed again
//
// The seed replays the schedule of the faults and the choices of the clients. It does not replay
// how the processes interleave: a violation may need several runs to come back.
//
// # What is checked
//
//   - locks, terms, runs, guarded sections: the intervals in which a holder was told that it holds
//     (from the return of the acquisition to the release or the end of the validity, whichever
//     came first) do not overlap, and tokens grow: by a sweep, and by porcupine as a second opinion
//   - the gate at the resource: no write of an older token after a newer one, and no unit sold
//     twice, each write being based on the one before it
//   - ticks: at most one run of each
//   - state: who acquires finds what was last confirmed, unless a server restarted meanwhile
//   - the end: when all faults are healed every name can be acquired, and processes that were told
//     to stop leave no lock behind
//
// Times are those of the machine's monotonic clock, which all processes share. Where a process may
// have been stopped between a fact and its time stamp, the stamp is taken on the side that makes
// the interval shorter: what is reported as a violation is one.
//
// # What is within the assumptions
//
// The bound on the error of clock rates is the drift, 1 % of the TTL + 2 ms: a node may count the
// TTL that much faster than the holder does. So within the assumptions
//
//   - every clock, of nodes and of clients, runs between true and 1 % fast, as long as it likes
//   - the wall clock of a node may be set back: that lengthens keys, and the quarantine after a
//     restart. It may not be set forward: that ends keys early, and is an infinite rate
//   - the wall clocks of the clients, which only propose tokens and tell when ticks are due, are
//     set at any time, but are less than the maximum TTL apart, since nodes that lose their memory
//     leave nothing but the clocks to keep tokens in order. For ticks the deadline of their start
//     comes on top (scheduler/doc.go, "How long the register lives")
//   - nodes restart with or without their memory, any number of them: the restart rule covers that
//   - processes and nodes stop for as long as they like, links hold, delay and cut whatever they like
//
// Beyond the assumptions, in the other profile, the clocks of a majority of the nodes are set
// forward by more than the TTL, a majority forgets everything without restarting, clients'
// elapsed time runs 10 % slow, and their wall clocks are hours off. Leases may then overlap, ticks
// run twice and tokens of leases go back; that is counted. The gate must hold all the same.
package main
