package redlock_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

func TestALostAttemptLeavesNothingAndWakesNobody(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		key := redlock.DefaultKeyPrefix + "job"
		clients := w.fleet.Clients()
		for _, c := range clients[:2] {
			require.NoError(t, c.Set(t.Context(), key, "another client", 0).Err())
		}
		sub := clients[2].Subscribe(t.Context(), key)
		defer sub.Close()
		_, err := sub.Receive(t.Context())
		require.NoError(t, err)
		_, err = w.locker("a").TryAcquire(t.Context(), "job")
		require.ErrorIs(t, err, redlock.ErrTaken)
		synctest.Wait()
		_, locked := w.fleet.Get(2, key)
		require.False(t, locked)
		_, err = sub.ReceiveTimeout(t.Context(), 1e9)
		require.Error(t, err, "a lost attempt publishes nothing")
	})
}
