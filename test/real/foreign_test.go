package real_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/test/redisserver"
)

// foreignRelease is the script of the Redlock text.
var foreignRelease = redis.NewScript(`
if redis.call("get",KEYS[1]) == ARGV[1] then
    return redis.call("del",KEYS[1])
else
    return 0
end`)

// foreignLock is what any other Redlock client does. It tells how many nodes it got.
func foreignLock(t *testing.T, nodes []redis.UniversalClient, name, value string, ttl time.Duration) int {
	t.Helper()
	got := 0
	for _, node := range nodes {
		err := node.SetArgs(t.Context(), name, value, redis.SetArgs{Mode: "NX", TTL: ttl}).Err()
		if err == nil {
			got++
		} else {
			require.ErrorIs(t, err, redis.Nil)
		}
	}
	return got
}

func foreignUnlock(t *testing.T, nodes []redis.UniversalClient, name, value string) int {
	t.Helper()
	freed := 0
	for _, node := range nodes {
		n, err := foreignRelease.Run(t.Context(), node, []string{name}, value).Int()
		require.NoError(t, err)
		freed += n
	}
	return freed
}

func TestAForeignRedlockClientExcludesUsAndIsExcluded(t *testing.T) {
	t.Parallel()
	const theirs = "20a1f0c3d4"
	fleet := redisserver.StartFleet(t, 5)
	nodes := fleet.Clients()
	locker := newLocker(t, fleet.Clients(), atEase(redlock.WithKeyPrefix(""))...)

	t.Run("they hold", func(t *testing.T) {
		require.Equal(t, 3, foreignLock(t, nodes[:3], "sku:42", theirs, time.Minute), "a bare majority")
		_, err := locker.TryAcquire(t.Context(), "sku:42")
		require.ErrorIs(t, err, redlock.ErrTaken)
		require.ErrorContains(t, err, theirs)
		require.Eventually(t, func() bool { // what our attempt got, it has given back
			found := owners(t, nodes, "sku:42")
			return count(found, theirs) == 3 && count(found, "") == 2
		}, soon, poll)

		ctx, cancel := context.WithTimeout(t.Context(), soon)
		defer cancel()
		waited := make(chan error, 1)
		go func() {
			lease, err := locker.Acquire(ctx, "sku:42")
			if err == nil {
				err = lease.Release(ctx)
			}
			waited <- err
		}()
		require.Equal(t, 3, foreignUnlock(t, nodes, "sku:42", theirs))
		require.NoError(t, <-waited, "nobody publishes their release, so the backoff finds it")
	})

	t.Run("we hold", func(t *testing.T) {
		lease := acquire(t, locker, "sku:43")
		require.Eventually(t, func() bool { return count(owners(t, nodes, "sku:43"), lease.Owner()) == 5 }, soon, poll)
		require.Zero(t, foreignLock(t, nodes, "sku:43", theirs, time.Minute))
		require.Zero(t, foreignUnlock(t, nodes, "sku:43", theirs))
		require.NoError(t, lease.Extend(t.Context()))
		require.NoError(t, lease.Release(t.Context()))
		require.Eventually(t, func() bool { return count(owners(t, nodes, "sku:43"), "") == 5 }, soon, poll)
		require.Equal(t, 5, foreignLock(t, nodes, "sku:43", theirs, time.Minute))
	})

	t.Run("our lease ran out and they hold", func(t *testing.T) {
		lease := acquire(t, locker, "sku:44", redlock.WithTTL(500*time.Millisecond))
		<-lease.Context().Done()
		require.Eventually(t, func() bool { return count(owners(t, nodes, "sku:44"), "") == 5 }, soon, poll)
		require.Equal(t, 5, foreignLock(t, nodes, "sku:44", theirs, time.Minute))
		require.ErrorIs(t, lease.Release(t.Context()), redlock.ErrLeaseExpired)
		pass(t, tidy)
		require.Equal(t, 5, count(owners(t, nodes, "sku:44"), theirs), "our late release leaves their lock alone")
	})
}
