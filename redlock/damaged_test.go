package redlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

func TestAFenceThatIsNoNumberIsReportedAndLeftAlone(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		const damaged = "abc 1 1 state"
		a := w.locker("a")
		lease := w.acquire(a, "held")
		synctest.Wait() // a quorum has it; now every node has
		for _, c := range w.fleet.Clients() {
			require.NoError(t, c.Set(t.Context(), "{quorate:sku:42}:fence", damaged, 0).Err())
			require.NoError(t, c.Set(t.Context(), "{quorate:held}:fence", damaged, 0).Err())
		}
		for range 2 { // as on the first attempt, so on the next
			_, err := a.TryAcquire(t.Context(), "sku:42")
			require.ErrorContains(t, err, "BADFENCE abc")
			require.ErrorContains(t, err, `delete it while nobody holds the name`)
			synctest.Wait()
			require.Zero(t, w.lockedOn("sku:42"))
		}
		require.ErrorContains(t, lease.Extend(t.Context()), "BADFENCE abc")
		require.ErrorContains(t, lease.Save(t.Context(), []byte("s")), "BADFENCE abc")
		require.NoError(t, lease.Release(t.Context()), "a lock of our own can be deleted all the same")
		synctest.Wait()
		require.Zero(t, w.lockedOn("held"))
		for i := range 3 {
			for _, name := range []string{"sku:42", "held"} {
				left, _ := w.fleet.Get(i, "{quorate:"+name+"}:fence")
				require.Equal(t, damaged, left)
			}
		}
	})
}

func TestOneDamagedNodeDoesNotStopAName(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		clients := w.fleet.Clients()
		ahead := time.Now().Add(time.Minute).UnixMicro()
		require.NoError(t, clients[0].Set(t.Context(), "{quorate:sku:42}:fence", 1<<53-1, 0).Err())
		require.NoError(t, clients[1].Set(t.Context(), "{quorate:sku:42}:fence", ahead, 0).Err())
		lease := w.acquire(w.locker("a"), "sku:42")
		require.Greater(t, int64(lease.Token()), ahead)
		require.NoError(t, lease.Release(t.Context()))
	})
}

func TestAClientThatIsNoneIsRefused(t *testing.T) {
	for _, none := range []redis.UniversalClient{nil, (*redis.Client)(nil), (*redis.ClusterClient)(nil), (*redis.Ring)(nil)} {
		_, err := redlock.New([]redis.UniversalClient{none})
		require.ErrorIs(t, err, redlock.ErrInvalidOption)
		require.ErrorContains(t, err, "the client of node 0 is nil")
	}
}

func TestAnAddressThatIsAURLIsRefusedWithoutItsPassword(t *testing.T) {
	c := redis.NewClient(&redis.Options{Addr: "redis://user:secret@10.0.0.1:6379"})
	defer func() { require.NoError(t, c.Close()) }()
	_, err := redlock.New([]redis.UniversalClient{c})
	require.ErrorIs(t, err, redlock.ErrInvalidOption)
	require.ErrorContains(t, err, "redis.ParseURL")
	require.NotContains(t, err.Error(), "secret")
}
