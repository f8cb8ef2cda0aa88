package sim

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// faults breaks things, one or a few at a time, and mends them.
type faults struct {
	w    *world
	rnd  *rand.Rand
	mend []func()

	pending sync.WaitGroup // faults that mend themselves
}

// A fault strikes node i, or host h, and returns what mends it, if it does not mend itself.
type fault struct {
	name    string
	weight  int
	forgets bool // the node's memory
	strike  func(f *faults, i int, h *host, span time.Duration) (mend func())
}

var allFaults = []fault{
	{"hang", 2, false, func(f *faults, i int, _ *host, _ time.Duration) func() {
		f.w.fleet.Hang(i)
		return func() { f.w.fleet.Resume(i) }
	}},
	{"stop", 2, false, func(f *faults, i int, _ *host, _ time.Duration) func() {
		f.w.fleet.Stop(i)
		return func() { f.restart(i) }
	}},
	{"restart", 2, false, func(f *faults, i int, _ *host, _ time.Duration) func() {
		f.restart(i)
		return nil
	}},
	{"stop and forget", 2, true, func(f *faults, i int, _ *host, _ time.Duration) func() {
		f.w.fleet.Stop(i)
		return func() { f.empty(i) }
	}},
	{"restart empty", 2, true, func(f *faults, i int, _ *host, _ time.Duration) func() {
		f.empty(i)
		return nil
	}},
	{"partition of a node", 2, false, func(f *faults, i int, _ *host, _ time.Duration) func() {
		f.w.fleet.Partition(i)
		return func() { f.w.fleet.Heal(i) }
	}},
	{"partition of a host from a node", 2, false, func(f *faults, i int, h *host, _ time.Duration) func() {
		client := f.w.fleet.Host(h.name)
		client.Partition(i)
		return func() { client.Heal(i) }
	}},
	{"partition of a host", 1, false, func(f *faults, _ int, h *host, _ time.Duration) func() {
		client := f.w.fleet.Host(h.name)
		client.Partition()
		return func() { client.Heal() }
	}},
	{"slow answers", 3, false, func(f *faults, i int, _ *host, span time.Duration) func() {
		f.w.fleet.Delay(i, span/5)
		return func() { f.w.fleet.Delay(i, 0) }
	}},
	{"slow requests", 3, false, func(f *faults, i int, _ *host, span time.Duration) func() {
		f.w.fleet.DelayRequests(i, span)
		return func() { f.w.fleet.DelayRequests(i, 0) }
	}},
	{"late requests", 3, false, func(f *faults, i int, _ *host, span time.Duration) func() {
		// Only those of this moment are late, so that later ones overtake them.
		f.w.fleet.DelayRequests(i, span)
		rest(f.w.t.Context(), 20*time.Millisecond)
		f.w.fleet.DelayRequests(i, 0)
		return nil
	}},
	{"node clock rate", 3, false, func(f *faults, i int, _ *host, _ time.Duration) func() {
		f.w.fleet.ClockRate(i, 0.992+0.016*f.rnd.Float64()) // within the bound on which the drift is built
		return nil
	}},
	{"all node clocks fast", 1, false, func(f *faults, _ int, _ *host, _ time.Duration) func() {
		for i := range f.w.fleet.Len() {
			f.w.fleet.ClockRate(i, 1.008)
		}
		return nil
	}},
	{"node clock set back", 1, false, func(f *faults, i int, _ *host, _ time.Duration) func() {
		d := time.Duration(f.rnd.IntN(2000)) * time.Millisecond
		f.w.nodes.wentBack(d)
		f.w.fleet.SkewClock(i, -d)
		return nil
	}},
	{"host clock set", 1, false, func(f *faults, _ int, h *host, _ time.Duration) func() {
		h.clock.Skew(wallClockError(f.rnd))
		return nil
	}},
	{"host asleep", 2, false, func(f *faults, _ int, h *host, span time.Duration) func() {
		f.pending.Go(func() { f.w.sleep(h, 2*span) })
		return nil
	}},
}

func (f *faults) run(ctx context.Context) {
	var deck []fault
	for _, kind := range allFaults {
		if !kind.forgets || !f.w.tame {
			for range kind.weight {
				deck = append(deck, kind)
			}
		}
	}
	for ctx.Err() == nil {
		rest(ctx, about(f.rnd, 4*time.Second))
		if len(f.mend) > 0 && f.rnd.IntN(2) == 0 {
			i := f.rnd.IntN(len(f.mend))
			f.mend[i]()
			f.mend = append(f.mend[:i], f.mend[i+1:]...)
			continue
		}
		f.strike(deck[f.rnd.IntN(len(deck))])
	}
}

func (f *faults) strike(kind fault) {
	i, h := f.rnd.IntN(f.w.fleet.Len()), f.w.hosts[f.rnd.IntN(len(f.w.hosts))]
	span := about(f.rnd, 3*time.Second)
	f.w.struck(kind.name)
	f.w.log.Info("fault", "kind", kind.name, "node", i, "host", h.name, "span", span)
	if mend := kind.strike(f, i, h, span); mend != nil {
		f.mend = append(f.mend, mend)
	}
}

// echo sends steps again, all the while: on a link that repairs itself that is no exception.
func (f *faults) echo(ctx context.Context, rnd *rand.Rand) {
	for ctx.Err() == nil {
		rest(ctx, about(rnd, time.Second))
		f.w.struck("doubled request")
		f.w.nodes.replay(rnd)
	}
}

// end mends everything.
func (f *faults) end() {
	for _, mend := range f.mend {
		mend()
	}
	f.mend = nil
	f.pending.Wait()
}

// restart restarts a node with its memory, but not its scripts.
func (f *faults) restart(i int) {
	f.w.nodes.restarted(i)
	f.w.fleet.Restart(i)
	f.w.nodes.restarted(i)
}

// empty restarts a node without its memory. Those who keep books are told before and after,
// because a save may begin in between.
func (f *faults) empty(i int) {
	f.w.forgot(i)
	f.w.fleet.RestartEmpty(i)
	f.w.forgot(i)
}
