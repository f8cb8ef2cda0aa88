package real_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/test/redisserver"
)

func TestAReplicaIsNoNode(t *testing.T) {
	t.Parallel()
	fleet := redisserver.StartFleet(t, 2)
	replica := redisserver.Start(t, redisserver.WithReplicaOf(fleet[0]))
	clients := append(fleet.Clients(), replica.Client())
	locker := newLocker(t, clients, atEase()...)

	reports, err := locker.Check(t.Context())
	require.ErrorIs(t, err, redlock.ErrReplica)
	require.ErrorContains(t, err, replica.Addr())
	require.ErrorContains(t, err, "give the address of an independent master")
	require.ErrorIs(t, reports[2].Err, redlock.ErrReplica)
	require.NoError(t, reports[0].Err)
	require.NotErrorIs(t, err, redlock.ErrNoQuorum, "the others are enough")

	lease := acquire(t, locker, "job")
	require.NoError(t, lease.Release(t.Context()))
	fleet[1].Kill()
	_, err = locker.TryAcquire(t.Context(), "job")
	require.ErrorIs(t, err, redlock.ErrNoQuorum, "a replica's vote is none")
	require.ErrorIs(t, err, redlock.ErrReplica)
}

func TestTheSameServerTwiceIsRefused(t *testing.T) {
	t.Parallel()
	fleet := redisserver.StartFleet(t, 2)

	_, err := redlock.New(append(fleet.Clients(), fleet[0].Client()))
	require.ErrorIs(t, err, redlock.ErrSameServer, "the same address")
	require.ErrorContains(t, err, fleet[0].Addr())

	// By another address, its run_id gives it away.
	byName := fleet[0].Client(func(o *redis.Options) { o.Addr = fmt.Sprintf("localhost:%d", fleet[0].Port()) })
	for name, again := range map[string]redis.UniversalClient{"a name": byName, "a link": fleet.Links()[0].Client()} {
		locker := newLocker(t, append(fleet.Clients(), again), atEase()...)
		_, err := locker.Acquire(t.Context(), "job")
		require.ErrorIs(t, err, redlock.ErrSameServer, name)
		require.ErrorContains(t, err, "give each server once")
		_, err = locker.TryAcquire(t.Context(), "job")
		require.ErrorIs(t, err, redlock.ErrSameServer, name)
		_, err = locker.Check(t.Context())
		require.ErrorIs(t, err, redlock.ErrSameServer, name)
	}
	for _, server := range fleet {
		require.Empty(t, server.Keys(), "nothing was asked of a fleet that is none")
	}
}

func TestWhatWeakensAFleetIsAWarningAndNoError(t *testing.T) {
	t.Parallel()
	evicting := redisserver.Start(t, redisserver.WithConfig("maxmemory-policy", "allkeys-lru"))
	master := redisserver.Start(t)
	redisserver.Start(t, redisserver.WithReplicaOf(master))
	plain := redisserver.StartFleet(t, 2)
	clients := append([]redis.UniversalClient{evicting.Client(), master.Client()}, plain.Clients()...)
	log := &journal{}
	locker := newLocker(t, clients, atEase(log.logger())...)

	reports, err := locker.Check(t.Context())
	require.NoError(t, err)
	require.Contains(t, strings.Join(reports[0].Warnings, "\n"), "maxmemory-policy is allkeys-lru")
	require.Contains(t, strings.Join(reports[0].Warnings, "\n"), "set noeviction")
	require.Contains(t, strings.Join(reports[1].Warnings, "\n"), "1 connected replica")
	require.Empty(t, reports[2].Warnings)
	require.Empty(t, reports[3].Warnings)
	require.Len(t, log.lines("level=WARN", "maxmemory-policy is allkeys-lru", evicting.Addr()), 1)
	require.Len(t, log.lines("level=WARN", "connected replica", master.Addr()), 1)
	require.Len(t, log.lines("level=WARN", "an even number of nodes"), 1)

	lease := acquire(t, locker, "job")
	require.NoError(t, lease.Release(t.Context()))
}

func TestCheckTellsTheQuarantineOfANodeThatRestartedUnnoticed(t *testing.T) {
	t.Parallel()
	fleet := redisserver.StartFleet(t, 3)
	locker := newLocker(t, fleet.Clients(), redlock.WithNodeTimeout(4*time.Second))
	lease, err := locker.TryAcquire(t.Context(), "job")
	require.ErrorIs(t, err, redlock.ErrQuarantined, "a fresh fleet is in quarantine: %v", lease)

	// The first uptime that is more than the default maximum TTL would take too long: a short
	// one will do, on a Locker of its own.
	brief := newLocker(t, fleet.Clients(), redlock.WithMaxTTL(redlock.DefaultMaxTTL*3/5), redlock.WithTTL(redlock.DefaultMaxTTL*3/5))
	awaitServing(t, brief)
	fleet[1].RestartEmpty()
	reports, err := brief.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, fleet[1].RunID(), reports[1].RunID)
	require.Positive(t, reports[1].Quarantine, "it reports the new process, whose votes do not count yet")
}

func TestNodesThatAreDownAreNotMistakenForAnEndedContext(t *testing.T) {
	t.Parallel()
	fleet := redisserver.StartFleet(t, 3)
	locker := newLocker(t, fleet.Clients(), atEase()...)
	release(t, acquire(t, locker, "job"))
	fleet[1].Kill()
	fleet[2].Kill()
	for range 5 {
		_, err := locker.TryAcquire(t.Context(), "job")
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.NotErrorIs(t, err, context.DeadlineExceeded, "the caller's context has no deadline")
		require.NotErrorIs(t, err, context.Canceled)
	}
}

// go-redis gives such a refusal with the pipeline, and leaves its commands without an error.
func TestARefusedPasswordIsToldAsSuch(t *testing.T) {
	t.Parallel()
	fleet := redisserver.StartFleet(t, 3, redisserver.WithACL("user default on >secret ~* &* +@all"))
	for why, password := range map[string]string{"WRONGPASS": "guessed", "NOAUTH": ""} {
		var clients []redis.UniversalClient
		for _, server := range fleet {
			clients = append(clients, server.Client(func(o *redis.Options) { o.Password = password }))
		}
		locker := newLocker(t, clients, atEase()...)
		_, err := locker.TryAcquire(t.Context(), "job")
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.ErrorContains(t, err, why)
		require.ErrorContains(t, err, "give the clients of the nodes the right user and password")
		reports, err := locker.Check(t.Context())
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		for _, report := range reports {
			require.False(t, report.Up)
			require.ErrorContains(t, report.Err, why)
		}
	}
}
