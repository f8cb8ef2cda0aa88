package redlock_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

// goleak in TestMain, and the bubble itself, fail the test if a goroutine is left.

func TestCloseLeavesNothingBehindWhateverIsInFlight(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a := w.locker("a")
		lease := w.acquire(a, "held", redlock.WithAutoExtend(true))
		other := w.acquire(w.locker("b"), "taken", redlock.WithAutoExtend(true))
		var wg sync.WaitGroup
		for _, name := range []string{"held", "taken", "taken"} {
			wg.Go(func() {
				if _, err := a.Acquire(t.Context(), name); err == nil {
					t.Errorf("%s was acquired", name)
				} else if !errors.Is(err, redlock.ErrClosed) {
					t.Errorf("unexpected: %v", err)
				}
			})
		}
		synctest.Wait()
		w.fleet.Hang(0)
		w.fleet.Stop(1)
		wg.Go(func() { _ = lease.Extend(t.Context()) })
		wg.Go(func() { _ = lease.Save(t.Context(), []byte("x")) })
		wg.Go(func() { _, _ = a.Check(t.Context()) })
		begin := time.Now()
		require.NoError(t, a.Close())
		require.Less(t, time.Since(begin), 15*time.Second)
		wg.Wait()
		w.fleet.Resume(0)
		require.NoError(t, other.Release(t.Context()))
	})
}

func TestCloseOfAnUnusedLockerReturnsAtOnce(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		begin := time.Now()
		require.NoError(t, w.locker("a").Close())
		require.Zero(t, time.Since(begin))
	})
}

func TestReleasesThatWereQueuedGoOutBeforeCloseReturns(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		lease := w.acquire(a, "sku:42")
		for i := range 3 {
			w.fleet.Delay(i, 20*time.Millisecond)
		}
		synctest.Wait()
		var wg sync.WaitGroup
		wg.Go(func() { _ = lease.Release(t.Context()) })
		synctest.Wait()
		require.NoError(t, a.Close())
		require.Zero(t, w.lockedOn("sku:42"))
		wg.Wait()
	})
}

func TestAnAcquireThatCloseInterruptsLeavesNoKey(t *testing.T) {
	for after := time.Duration(0); after < 6*time.Millisecond; after += 500 * time.Microsecond {
		bubble(t, 3, func(t *testing.T, w *world) {
			a := w.locker("a")
			require.NoError(t, w.acquire(a, "warm-up").Release(t.Context()))
			for i := range 3 {
				w.fleet.Delay(i, time.Duration(2*i+1)*time.Millisecond)
			}
			synctest.Wait()
			var wg sync.WaitGroup
			wg.Go(func() {
				lease, err := a.Acquire(t.Context(), "sku:42")
				if err == nil {
					_ = lease.Release(t.Context())
				}
			})
			time.Sleep(after)
			require.NoError(t, a.Close())
			wg.Wait()
			require.Zero(t, w.lockedOn("sku:42"), "closed after %v", after)
		})
	}
}
