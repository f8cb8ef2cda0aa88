package redlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

// What the model of the protocol found; each is its trace, in terms of the code.

func TestASaveThatWasDecidedAfterTheEndIsNotConfirmed(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		w.clock("a").Skew(time.Minute) // so that a's raised number is above b's token
		a, b := w.locker("a"), w.locker("b")
		require.NoError(t, w.acquire(b, "other").Release(t.Context()))
		lease := w.acquire(a, "sku:42", redlock.WithTTL(100*time.Millisecond))
		time.Sleep(10 * time.Millisecond)
		// Node 2 loses the lock, as when it hangs past the TTL: healing it takes a higher number.
		require.NoError(t, w.fleet.Clients()[2].Del(t.Context(), "quorate:sku:42").Err())
		require.NoError(t, lease.Extend(t.Context()))
		synctest.Wait()
		time.Sleep(10 * time.Millisecond)

		lag := func(d time.Duration) {
			for i := range 3 {
				w.fleet.DelayRequests(i, d)
			}
		}
		lag(300 * time.Millisecond) // longer than the lease lasts
		extended, saved := make(chan error, 1), make(chan error, 1)
		go func() { extended <- lease.Extend(t.Context()) }()
		time.Sleep(time.Millisecond)
		go func() { saved <- lease.Save(t.Context(), []byte("of a")) }()
		time.Sleep(time.Millisecond)
		lag(0)
		time.Sleep(150 * time.Millisecond)
		next, err := b.TryAcquire(t.Context(), "sku:42")
		require.NoError(t, err, "the lease has ended")
		require.Empty(t, next.State())
		require.NoError(t, next.Release(t.Context()))
		require.ErrorIs(t, <-extended, redlock.ErrLeaseExpired)
		require.ErrorIs(t, <-saved, redlock.ErrLeaseExpired, "b was granted the name since, without the value")
	})
}

func TestAReleaseRaisesTheFenceWhereTheFirstProposalHadTheLock(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		w.clock("b").Skew(time.Minute)
		a, b := w.locker("a"), w.locker("b")
		require.NoError(t, w.acquire(a, "other").Release(t.Context()))
		require.NoError(t, w.acquire(b, "another").Release(t.Context()))
		w.fleet.Host("b").Partition(0) // so that only nodes 1 and 2 have its fence
		require.NoError(t, w.acquire(b, "sku:42").Release(t.Context()))

		// The first proposal: node 0 accepts at once, the others refuse after 10 ms. The second is
		// on its way to node 0 for as long as the client keeps a connection, and longer.
		w.fleet.Delay(1, 10*time.Millisecond)
		w.fleet.Delay(2, 10*time.Millisecond)
		go func() {
			time.Sleep(5 * time.Millisecond)
			w.fleet.DelayRequests(0, 10*time.Second)
			time.Sleep(time.Second)
			w.fleet.DelayRequests(0, 0)
		}()
		lease := w.acquire(a, "sku:42")
		require.NoError(t, lease.Release(t.Context()))
		time.Sleep(9 * time.Second)
		_, held := w.fleet.Get(0, "quorate:sku:42")
		require.False(t, held)
		time.Sleep(2 * time.Second)
		_, held = w.fleet.Get(0, "quorate:sku:42")
		require.False(t, held, "the second proposal has arrived after the release, and brought the lock back")
	})
}

// The same as on real servers in test/real, where chaos found it.
func TestTheRefusalOfANodeInQuarantineEndsNoLease(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		require.NoError(t, w.acquire(b, "other").Release(t.Context()))
		require.NoError(t, w.acquire(a, "other").Release(t.Context()))
		w.fleet.Host("a").Partition(3, 4)
		lease := w.acquire(a, "sku:42", redlock.WithAutoExtend(true))
		require.Equal(t, 3, w.lockedOn("sku:42"), "a bare quorum")
		time.Sleep(time.Second) // the attempts on nodes 3 and 4 are lost
		w.fleet.Host("a").Heal()
		time.Sleep(time.Second)
		w.fleet.RestartEmpty(2)
		_, err := b.TryAcquire(t.Context(), "sku:42") // takes 2, 3 and 4, and withdraws
		require.Error(t, err)
		time.Sleep(redlock.DefaultTTL)
		require.NoError(t, lease.Err(), "one node was bad at a time")
		require.Equal(t, 5, w.lockedOn("sku:42"), "and all of them are healed")
		require.NoError(t, lease.Release(t.Context()))
	})
}
