package real_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/test/redisserver"
)

func TestAPromotedReplicaDoesNotCountUntilTheMaximumTTLHasPassed(t *testing.T) {
	t.Parallel()
	const maxTTL = 4 * time.Second
	others := redisserver.StartFleet(t, 2)
	master := redisserver.Start(t)
	replica := redisserver.Start(t, redisserver.WithReplicaOf(master))
	sentinel := redisserver.StartSentinel(t, master, replica)

	newHost := func() *redlock.Locker {
		clients := append([]redis.UniversalClient{sentinel.Client()}, others.Clients()...)
		return newLocker(t, clients, redlock.WithMaxTTL(maxTTL), redlock.WithTTL(maxTTL), redlock.WithNodeTimeout(maxTTL/2))
	}
	holder, rival := newHost(), newHost()
	awaitServing(t, holder, rival)
	first := acquire(t, holder, "works")
	require.NoError(t, first.Extend(t.Context()))
	_, err := rival.TryAcquire(t.Context(), "works")
	require.ErrorIs(t, err, redlock.ErrTaken)
	require.NoError(t, first.Release(t.Context()))
	require.Contains(t, master.Keys(), "{quorate:works}:fence", "the client of the Sentinel reaches the master")

	// From here on, the lease hangs on the Sentinel's master and one other node.
	others[1].Kill()
	lease := acquire(t, holder, "job")
	require.Eventually(t, func() bool { return count(replica.Keys(), lockKey("job")) == 1 }, soon, poll)
	master.Kill()
	// By itself the Sentinel would take some seconds to do the same.
	ask := redis.NewSentinelClient(&redis.Options{Addr: sentinel.Addr()})
	defer func() { _ = ask.Close() }()
	if err := ask.Failover(t.Context(), redisserver.MasterName).Err(); err != nil {
		t.Logf("the Sentinel sees to it by itself: %v", err) // it has seen the master's end before
	}

	// The lock is lost on the way, as replication loses what came last: the promoted replica
	// forgets it as soon as that can be.
	var lastReplica atomic.Int64 // since when it may have been the master, as time since start
	start := time.Now()
	eye := replica.Client()
	forgotten := make(chan error, 1)
	go func() {
		tick := time.NewTicker(poll)
		defer tick.Stop()
		for {
			asked := time.Since(start)
			info, err := eye.Info(t.Context(), "replication").Result()
			if err != nil {
				forgotten <- err
				return
			}
			if strings.Contains(info, "role:master") {
				forgotten <- eye.FlushAll(t.Context()).Err()
				return
			}
			lastReplica.Store(int64(asked))
			<-tick.C
		}
	}()

	quarantined := 0
	var next *redlock.Lease
	require.Eventually(t, func() bool {
		var err error
		next, err = rival.TryAcquire(t.Context(), "job")
		if errors.Is(err, redlock.ErrQuarantined) {
			quarantined++
		}
		return err == nil
	}, 2*soon, 20*time.Millisecond)
	alive, won := lease.Context().Err() == nil, time.Since(start)
	require.False(t, alive, "two hold the name")
	require.NoError(t, <-forgotten)
	counted := won - time.Duration(lastReplica.Load())
	t.Logf("the replica was promoted %v after the master's end, and the name was had %v after that", time.Duration(lastReplica.Load()), counted)
	require.GreaterOrEqual(t, counted, maxTTL)
	require.Positive(t, quarantined, "the error says why")
	require.Greater(t, next.Token(), lease.Token())
	require.Equal(t, replica.Addr(), sentinel.MasterAddr())
	require.NoError(t, next.Release(t.Context()))
}
