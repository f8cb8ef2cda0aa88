package scheduler_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/scheduler"
)

// restartAllEmpty restarts every node without its memory, each when the one before counts again.
func (w *world) restartAllEmpty() {
	for i := range w.fleet.Len() {
		w.fleet.RestartEmpty(i)
		time.Sleep(redlock.DefaultMaxTTL + 3*time.Second)
	}
}

func TestATickThatWasRunIsNotRunAgainThoughAllNodesHaveForgottenIt(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b, c := w.replicas("@every 1m", func(context.Context, *replica, scheduler.Run) error { return nil }, scheduler.WithMisfire(scheduler.MisfireAll(100)))
		run(a, b, c)
		w.at(6*time.Minute + 10*time.Second)
		w.restartAllEmpty() // between two ticks
		w.at(12*time.Minute + 10*time.Second)
		w.eachOnce(time.Minute, 12*time.Minute, time.Minute)
		for _, r := range []*replica{a, b, c} {
			require.Zero(t, r.count(scheduler.Missed))
		}
	})
}

func TestAPauseLastsThoughAllNodesHaveForgottenIt(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b, c := w.replicas("@every 1m", func(context.Context, *replica, scheduler.Run) error { return nil })
		run(a, b, c)
		w.at(2*time.Minute + 10*time.Second)
		require.NoError(t, a.sched.Pause(t.Context(), "tick"))
		w.at(3*time.Minute + 10*time.Second)
		w.restartAllEmpty()
		w.at(7*time.Minute + 10*time.Second)
		w.eachOnce(time.Minute, 2*time.Minute, time.Minute)
		require.Len(t, w.ran(), 2)
		status, err := b.sched.Status(t.Context(), "tick")
		require.NoError(t, err)
		require.True(t, status.Paused)

		require.NoError(t, c.sched.Resume(t.Context(), "tick"))
		w.at(9*time.Minute + 10*time.Second)
		require.Equal(t, 1, w.times()[8*time.Minute])
		require.Equal(t, 1, w.times()[9*time.Minute])
	})
}
