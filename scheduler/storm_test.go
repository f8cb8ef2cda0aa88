package scheduler_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/scheduler"
)

// Whatever fails, no tick is run twice and tokens increase from run to run; and when everything
// is well again, each tick is run.
func TestNoTickIsRunTwiceUnderAnyFaults(t *testing.T) {
	for seed := range uint64(2) { // the simulation has many more
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) { storm(t, w, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

func storm(t *testing.T, w *world, rnd *rand.Rand) {
	work := func(ctx context.Context, _ *replica, run scheduler.Run) error {
		select { // as long as the tick says, so that a seed means the same each time
		case <-time.After(time.Duration(run.Scheduled.Unix()*7919%1500) * time.Millisecond):
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	a, b, c := w.replicas("*/2 * * * * *", work)
	replicas := []*replica{a, b, c}
	run(replicas...)
	emptied := -time.Hour
	for range 150 {
		node, r := rnd.IntN(3), replicas[rnd.IntN(3)]
		[]func(){
			func() { w.fleet.Hang(node) },
			func() { w.fleet.Resume(node) },
			func() { w.fleet.Delay(node, time.Duration(rnd.IntN(300))*time.Millisecond) },
			func() { w.fleet.Partition(node) },
			func() { w.fleet.Heal() },
			func() { w.calm(replicas) },
			func() { w.calm(replicas) },
			func() { w.calm(replicas) },
			func() { w.calm(replicas) },
			func() { r.host.Partition() },
			func() { r.host.Partition(node) },
			func() { r.host.Heal() },
			func() { r.host.Heal() },
			func() { r.clock.Skew(time.Duration(rnd.IntN(120)-60) * time.Second) },
			func() { r.clock.Suspend(time.Duration(rnd.IntN(3000)) * time.Millisecond) },
			func() { r.shutDown(); run(r) },
			func() {
				// One at a time: two nodes that forget at once forget what only a quorum knew.
				if now := time.Since(w.start); now-emptied > 20*time.Second {
					emptied = now
					w.fleet.RestartEmpty(node)
				}
			},
		}[rnd.IntN(17)]()
		time.Sleep(time.Duration(rnd.IntN(2500)) * time.Millisecond)
	}
	w.calm(replicas)
	for _, r := range replicas {
		r.clock.Skew(0)
	}
	inStorm := len(w.times())
	require.Greater(t, inStorm, 20, "not all is lost")

	// What a clock that was ahead has skipped remains skipped.
	end := time.Since(w.start).Truncate(2 * time.Second)
	w.at(end + 3*time.Minute)
	w.eachOnce(end+2*time.Minute, end+3*time.Minute-4*time.Second, 2*time.Second)
	interrupted := 0
	for _, r := range replicas {
		interrupted += r.count(scheduler.Interrupted)
	}
	t.Logf("%d ticks run in the storm, %d interrupted", inStorm, interrupted)
	assert.Less(t, interrupted, inStorm)
}

// calm ends all faults of nodes and network.
func (w *world) calm(replicas []*replica) {
	w.fleet.Heal()
	for node := range w.fleet.Len() {
		w.fleet.Resume(node)
		w.fleet.Delay(node, 0)
	}
	for _, r := range replicas {
		r.host.Heal()
	}
}
