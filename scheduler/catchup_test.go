package scheduler_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/scheduler"
)

// The backlog that a dead replica leaves is no overlap of the run that takes over.
func TestTicksThatWereDueBeforeARunTookOverAreCaughtUpWithAndNotOverlapped(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		opts := []scheduler.JobOption{
			scheduler.WithTTL(2 * time.Second), scheduler.WithMisfire(scheduler.MisfireAll(100)), scheduler.WithCatchUp(5 * time.Minute),
			scheduler.WithOverlap(scheduler.OverlapQueue), scheduler.WithAtLeastOnce(10),
		}
		f := func(ctx context.Context, r *replica, run scheduler.Run) error {
			if r.name == "a" && run.Scheduled.Sub(w.start) == 5*time.Second {
				r.host.Partition(0, 1, 2) // it dies in the run
				<-ctx.Done()
				return ctx.Err()
			}
			time.Sleep(200 * time.Millisecond)
			return nil
		}
		a, b := w.replica("a"), w.replica("b")
		a.clock.Skew(0)
		b.clock.Skew(-10 * time.Millisecond) // so that a runs the ticks
		a.add("@every 1s", f, opts...)
		b.add("@every 1s", f, opts...)
		run(a, b)
		w.at(20*time.Second + 500*time.Millisecond)
		runs := map[time.Duration]int{}
		for _, r := range w.ran() {
			runs[r.Scheduled.Sub(w.start)]++
		}
		for tick := time.Second; tick <= 20*time.Second; tick += time.Second {
			want := 1
			if tick == 5*time.Second {
				want = 2
			}
			require.Equal(t, want, runs[tick], "runs of tick %v; b missed %d to overlap", tick, b.count(scheduler.Missed, scheduler.Overlap))
		}
		a.host.Heal(0, 1, 2)
	})
}
