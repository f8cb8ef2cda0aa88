package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/quorate/quorate/scheduler"
)

// ticks is the layer of package scheduler: every host has the same job, and each of its ticks is
// run at most once.
type ticks struct {
	w *world

	mu    sync.Mutex
	ranOn map[time.Time]string // host by tick
}

func newTicks(w *world) *ticks { return &ticks{w: w, ranOn: map[time.Time]string{}} }

func (k *ticks) run(ctx context.Context, h *host, _ *rand.Rand) {
	sched := must(scheduler.New(h.locker, scheduler.WithClock(h.clock), scheduler.WithIdentity(h.name), scheduler.WithLogger(k.w.log)))
	err := sched.Add("job", "@every 3s", func(_ context.Context, run scheduler.Run) error {
		k.w.did("tick")
		k.mu.Lock()
		defer k.mu.Unlock()
		if by, twice := k.ranOn[run.Scheduled]; twice {
			k.w.violated("tick %v is run by %s after %s", run.Scheduled, h.name, by)
		}
		k.ranOn[run.Scheduled] = h.name
		return nil
	})
	if err != nil {
		k.w.violated("add: %v", err)
	}
	if err := sched.Run(ctx); err != nil && !errors.Is(err, scheduler.ErrDrainTimeout) {
		k.w.violated("scheduler: %v", err)
	}
}

func (k *ticks) audit() {}
func (k *ticks) end()   {}
