package main

import "time"

// sizes are how much of everything a run does.
type sizes struct {
	times
	span   time.Duration // of one measurement
	warm   time.Duration // before it
	rounds int           // of which the median is taken
	tiny   bool          // only to see that everything can be measured

	hold       time.Duration // how long a process holds the hot name
	processes  []int         // that want one hot name
	leases     int           // in one process
	leaseTTL   time.Duration
	leaseTTLs  int // how many of them the leases are held for
	resigns    int
	kills      int
	termTTL    time.Duration
	jobs       int
	jobsIn     time.Duration // from the start of the replicas to the second in which all jobs are due
	idle       time.Duration // how long a waiter is watched
	names      []int         // on one node
	goroutines []int
	nodes      []int
	delays     []time.Duration // of a link, in each direction
}

func fullSizes() sizes {
	return sizes{
		span: 1500 * time.Millisecond, warm: 300 * time.Millisecond, rounds: 3,
		hold: time.Millisecond, processes: []int{8, 16, 32},
		leases: 100_000, leaseTTL: 30 * time.Second, leaseTTLs: 3,
		resigns: 30, kills: 10, termTTL: 2 * time.Second,
		jobs: 10_000, jobsIn: 20 * time.Second,
		idle:  48 * time.Second, // 18 extensions of the holder, so that one more or less is little
		names: []int{1_000, 10_000, 100_000, 1_000_000}, goroutines: []int{1, 4, 16, 64, 256, 1024},
		nodes: []int{1, 3, 5, 7}, delays: []time.Duration{0, time.Millisecond, 10 * time.Millisecond},
	}
}

// tinySizes are those of the test.
func tinySizes() sizes {
	return sizes{
		times: times{TTL: time.Second, MaxTTL: time.Second},
		span:  100 * time.Millisecond, warm: 50 * time.Millisecond, rounds: 1, tiny: true,
		hold: time.Millisecond, processes: []int{2},
		leases: 200, leaseTTL: time.Second, leaseTTLs: 1,
		resigns: 2, kills: 1, termTTL: time.Second,
		jobs: 20, jobsIn: 3 * time.Second,
		idle:  300 * time.Millisecond,
		names: []int{10, 100}, goroutines: []int{1, 4},
		nodes: []int{1, 3}, delays: []time.Duration{0, time.Millisecond},
	}
}

// many is n, or a few where the run is tiny.
func (s sizes) many(n int) int {
	if s.tiny {
		return min(n, 4)
	}
	return n
}
