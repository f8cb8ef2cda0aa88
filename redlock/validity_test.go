package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

func TestValidityCountsFromBeforeTheFirstNodeWasAsked(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		warm := w.acquire(a, "warm") // the nodes learn the scripts
		require.NoError(t, warm.Extend(t.Context()))
		require.NoError(t, warm.Release(t.Context()))
		for i := range 3 {
			w.fleet.Delay(i, 200*time.Millisecond)
		}
		const validity = 8*time.Second - 80*time.Millisecond - 2*time.Millisecond
		lease := w.acquire(a, "job")
		require.LessOrEqual(t, lease.Remaining(), validity-200*time.Millisecond)
		time.Sleep(5 * time.Second)
		require.NoError(t, lease.Extend(t.Context()))
		require.LessOrEqual(t, lease.Remaining(), validity-200*time.Millisecond)
	})
}

func TestAnExtensionDecidedAfterTheEndDoesNotCount(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		lease := w.acquire(w.locker("a"), "job")
		require.NoError(t, lease.Extend(t.Context())) // the nodes learn the script
		time.Sleep(7010 * time.Millisecond)
		for i := range 3 {
			w.fleet.Delay(i, 200*time.Millisecond)
		}
		time.AfterFunc(10*time.Millisecond, func() { w.clock("a").Suspend(5 * time.Second) }) // no timer sees it before the answers
		require.ErrorIs(t, lease.Extend(t.Context()), redlock.ErrLeaseExpired)
		require.Zero(t, lease.Remaining())
	})
}
