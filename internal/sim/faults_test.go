package sim

import (
	"context"
	"math/rand/v2"
	"time"
)

// faults breaks things, one or a few at a time, and mends them.
type faults struct {
	w    *world
	rnd  *rand.Rand
	mend []func()
}

func (f *faults) run(ctx context.Context) {
	for ctx.Err() == nil {
		rest(ctx, time.Duration(f.rnd.ExpFloat64()*float64(4*time.Second)))
		if len(f.mend) > 0 && f.rnd.IntN(2) == 0 {
			i := f.rnd.IntN(len(f.mend))
			f.mend[i]()
			f.mend = append(f.mend[:i], f.mend[i+1:]...)
			continue
		}
		f.strike()
	}
}

// end mends everything.
func (f *faults) end() {
	for _, mend := range f.mend {
		mend()
	}
	f.mend = nil
}

func (f *faults) strike() {
	fleet, log := f.w.fleet, f.w.log
	i := f.rnd.IntN(fleet.Len())
	h := f.w.hosts[f.rnd.IntN(len(f.w.hosts))]
	span := time.Duration(f.rnd.ExpFloat64() * float64(3*time.Second))
	kind := f.rnd.IntN(11)
	if f.w.tame && (kind == 2 || kind == 3) {
		kind = 1
	}
	f.w.count("fault")
	log.Info("fault", "kind", kind, "node", i, "host", h.name, "span", span)
	switch kind {
	case 0:
		fleet.Hang(i)
		f.mend = append(f.mend, func() { fleet.Resume(i) })
	case 1:
		fleet.Stop(i)
		f.mend = append(f.mend, func() { fleet.Restart(i) })
	case 2:
		fleet.Stop(i)
		f.mend = append(f.mend, func() { f.empty(i) })
	case 3:
		f.empty(i)
	case 4:
		fleet.Partition(i)
		f.mend = append(f.mend, func() { fleet.Heal(i) })
	case 5:
		client := fleet.Host(h.name)
		client.Partition(i)
		f.mend = append(f.mend, func() { client.Heal(i) })
	case 6:
		client := fleet.Host(h.name)
		client.Partition()
		f.mend = append(f.mend, func() { client.Heal() })
	case 7:
		fleet.Delay(i, span/10)
		f.mend = append(f.mend, func() { fleet.Delay(i, 0) })
	case 8: // within the bound on which the drift is built
		fleet.ClockRate(i, 0.992+0.016*f.rnd.Float64())
	case 9: // as when a laptop is closed: the clock goes on, timers do not
		h.clock.Suspend(span)
	case 10:
		fleet.Restart(i)
	}
}

// empty restarts a node without its memory. The books are told before and after, because a save
// may be confirmed in between.
func (f *faults) empty(i int) {
	f.w.forget()
	f.w.fleet.RestartEmpty(i)
	f.w.forget()
}
