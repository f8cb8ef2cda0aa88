package redlock_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

func TestStateGoesFromHolderToHolder(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		lease := w.acquire(a, "job")
		require.Nil(t, lease.State())
		value := []byte("one \x00\n two")
		require.NoError(t, lease.Save(t.Context(), value))
		require.Equal(t, value, lease.State())
		require.NoError(t, lease.Release(t.Context()))
		for range 3 { // also through holders that save nothing
			lease = w.acquire(b, "job")
			require.Equal(t, value, lease.State())
			require.NoError(t, lease.Release(t.Context()))
		}
		lease = w.acquire(a, "job")
		require.NoError(t, lease.Save(t.Context(), nil))
		require.NoError(t, lease.Release(t.Context()))
		require.Empty(t, w.acquire(b, "job").State())
	})
}

func TestAHolderSavesThoughRivalsHaveLeftHigherFences(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		lease := w.acquire(a, "job")
		_, err := b.TryAcquire(t.Context(), "job")
		require.ErrorIs(t, err, redlock.ErrTaken)
		synctest.Wait()
		require.NoError(t, lease.Save(t.Context(), []byte("x")))
		require.NoError(t, lease.Release(t.Context()))
	})
}

func TestASaveOfALeaseThatWasOvertakenIsRefused(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		lease := w.acquire(a, "job")
		// The holder's keys vanish, and another acquires, though its time is not up.
		for _, c := range w.fleet.Clients() {
			require.NoError(t, c.Del(t.Context(), redlock.DefaultKeyPrefix+"job").Err())
		}
		next := w.acquire(b, "job")
		require.NoError(t, next.Save(t.Context(), []byte("next")))
		require.ErrorIs(t, lease.Save(t.Context(), []byte("late")), redlock.ErrStaleToken)
		require.NoError(t, next.Release(t.Context()))
		_ = lease.Release(t.Context())
		require.Equal(t, "next", string(w.acquire(b, "job").State()))
	})
}

func TestAValueThatOnlyAMinorityHasIsWrittenBackBeforeItIsUsed(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a, b, c := w.locker("a"), w.locker("b"), w.locker("c")
		lease := w.acquire(a, "job")
		synctest.Wait()
		w.fleet.Host("a").Partition(1, 2)
		require.ErrorIs(t, lease.Save(t.Context(), []byte("half")), redlock.ErrNoQuorum)
		w.fleet.Host("a").Partition()
		time.Sleep(redlock.DefaultTTL)

		// The next holder sees the value on node 0 and one other node, and must make it last:
		w.fleet.Stop(2)
		next := w.acquire(b, "job")
		require.Equal(t, "half", string(next.State()))
		require.NoError(t, next.Release(t.Context()))
		// … also where node 0 is gone for the one after it.
		w.fleet.Restart(2)
		time.Sleep(redlock.DefaultMaxTTL + 2*time.Second)
		w.fleet.Stop(0)
		require.Equal(t, "half", string(w.acquire(c, "job").State()))
		w.fleet.Restart(0)
		w.fleet.Host("a").Heal()
	})
}

func TestStateOverTheLimitIsRefusedAndTheOldOneKept(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		lease := w.acquire(w.locker("a"), "job")
		full := bytes.Repeat([]byte{'x'}, redlock.MaxStateSize)
		require.NoError(t, lease.Save(t.Context(), full))
		err := lease.Save(t.Context(), append(full, 'x'))
		require.ErrorIs(t, err, redlock.ErrStateTooLarge)
		require.ErrorContains(t, err, "8192")
		require.Equal(t, full, lease.State())
		require.NoError(t, lease.Release(t.Context()))
	})
}

func TestInspectTellsWhoHoldsAName(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		status, err := b.Inspect(t.Context(), "job")
		require.NoError(t, err)
		require.Empty(t, status.Holder)
		require.Zero(t, status.Token)

		lease := w.acquire(a, "job")
		require.NoError(t, lease.Save(t.Context(), []byte("state")))
		synctest.Wait()
		w.fleet.Stop(4)
		time.Sleep(time.Second)
		status, err = b.Inspect(t.Context(), "job")
		require.NoError(t, err)
		require.Equal(t, lease.Owner(), status.Holder)
		require.Equal(t, lease.Token(), status.Token)
		require.Equal(t, "state", string(status.State))
		require.InDelta(t, 7*time.Second, status.TTL, float64(300*time.Millisecond))
		require.Len(t, status.Nodes, 5)
		require.Error(t, status.Nodes[4].Err)
		require.Equal(t, lease.Owner(), status.Nodes[0].Holder)

		w.fleet.Stop(3)
		w.fleet.Stop(2)
		_, err = b.Inspect(t.Context(), "job")
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
	})
}
