package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/scheduler"
)

// ticks is the layer of package scheduler: every host has the same jobs. Each tick of one is run at
// most once; those of the other are taken over, step by step, when a run is cut short. Now and then
// somebody pauses the jobs, resumes them, or triggers a run.
type ticks struct {
	w *world

	mu    sync.Mutex
	books map[string]*tickBook // by job
}

// A tickBook is what is known of a job's runs.
type tickBook struct {
	attempt map[string]int // the last attempt at each run
	token   redlock.Token  // the highest
	steps   map[string]bool
	last    context.Context // of the last run
	host    *host           // where
}

func newTicks(w *world) *ticks {
	k := &ticks{w: w, books: map[string]*tickBook{}}
	for _, job := range []string{"once", "steps", "both"} {
		k.books[job] = &tickBook{attempt: map[string]int{}, steps: map[string]bool{}}
	}
	return k
}

func (k *ticks) run(ctx context.Context, h *host, rnd *rand.Rand) {
	sched := must(scheduler.New(h.locker, scheduler.WithClock(h.clock), scheduler.WithIdentity(h.name), scheduler.WithLogger(k.w.log),
		scheduler.WithDrainTimeout(5*time.Second)))
	naps := rand.New(rand.NewPCG(rnd.Uint64(), 1))
	var napping sync.Mutex
	nap := func(ctx context.Context, mean time.Duration) {
		napping.Lock()
		d := about(naps, mean)
		napping.Unlock()
		rest(ctx, d)
	}
	for _, err := range []error{
		sched.Add("once", "@every 3s", func(ctx context.Context, run scheduler.Run) error {
			k.begin(ctx, h, run, true)
			return nil
		}, scheduler.WithMisfire(scheduler.MisfireAll(20))),
		sched.Add("steps", "@every 20s", func(ctx context.Context, run scheduler.Run) error {
			k.begin(ctx, h, run, true)
			for i := range 3 {
				if err := k.step(ctx, run, i, nap); err != nil {
					return err
				}
			}
			return nil
		}, scheduler.WithAtLeastOnce(10), scheduler.WithOverlap(scheduler.OverlapQueue)),
		sched.Add("both", "@every 15s", func(ctx context.Context, run scheduler.Run) error {
			k.begin(ctx, h, run, false)
			nap(ctx, 20*time.Second)
			return nil
		}, scheduler.WithAtLeastOnce(10), scheduler.WithOverlap(scheduler.OverlapAllow)),
	} {
		if err != nil {
			k.w.violated("add: %v", err)
		}
	}
	var asking sync.WaitGroup
	asking.Go(func() { k.ask(ctx, sched, rnd) })
	if err := sched.Run(ctx); err != nil && !errors.Is(err, scheduler.ErrDrainTimeout) {
		k.w.violated("scheduler: %v", err)
	}
	asking.Wait()
}

// ask has somebody pause, resume and trigger jobs.
func (k *ticks) ask(ctx context.Context, sched *scheduler.Scheduler, rnd *rand.Rand) {
	for {
		rest(ctx, about(rnd, 30*time.Second))
		if ctx.Err() != nil {
			return
		}
		job := []string{"once", "steps", "both"}[rnd.IntN(3)]
		within, cancel := context.WithTimeout(ctx, 5*time.Second)
		switch rnd.IntN(3) {
		case 0: // what cannot be reached now is asked for another time
			if sched.Pause(within, job) == nil {
				rest(ctx, about(rnd, 5*time.Second))
			}
			_ = sched.Resume(within, job)
		case 1:
			_ = sched.Trigger(within, job)
		case 2:
			_ = sched.Resume(within, job)
		}
		cancel()
	}
}

// begin takes note of a run. No two runs with the same attempt, no token that regresses, and where
// runs must not overlap, no two at the same time.
func (k *ticks) begin(ctx context.Context, h *host, run scheduler.Run, alone bool) {
	k.w.did("tick")
	k.mu.Lock()
	defer k.mu.Unlock()
	b := k.books[run.Job]
	id := fmt.Sprint(run.Kind, " ", run.Scheduled.UnixMilli())
	if run.Attempt <= b.attempt[id] {
		k.w.violated("attempt %d at %s of job %s is begun by %s after attempt %d", run.Attempt, id, run.Job, h.name, b.attempt[id])
	}
	b.attempt[id] = run.Attempt
	if ctx.Err() != nil {
		return // over before it began
	}
	if alone {
		if run.Token <= b.token {
			k.w.violated("job %s: token %d after %d", run.Job, run.Token, b.token)
		}
		// A context that is made from a lease's ends a moment after the machine has woken up: see leases.audit.
		if b.last != nil && b.host.knows(b.last) && b.host.rested() > 2*time.Second && h.knows(ctx) {
			k.w.violated("%s runs job %s while %s does", h.name, run.Job, b.host.name)
		}
	}
	b.token = max(b.token, run.Token)
	b.last, b.host = ctx, h
}

// step takes a step, which must not have been completed before.
func (k *ticks) step(ctx context.Context, run scheduler.Run, n int, nap func(context.Context, time.Duration)) error {
	id := fmt.Sprint(run.Kind, " ", run.Scheduled.UnixMilli(), " ", n)
	b := k.books[run.Job]
	err := run.Step(fmt.Sprint(n), func(context.Context) error {
		k.mu.Lock()
		again := b.steps[id]
		k.mu.Unlock()
		if again {
			k.w.violated("job %s: step %s is taken again by attempt %d", run.Job, id, run.Attempt)
		}
		nap(ctx, 3*time.Second)
		return ctx.Err()
	})
	if err == nil {
		k.mu.Lock()
		b.steps[id] = true
		k.mu.Unlock()
	}
	return err
}

func (k *ticks) audit() {}
func (k *ticks) end()   {}
