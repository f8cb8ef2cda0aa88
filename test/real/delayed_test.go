package real_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/test/redisserver"
)

// A detour leads a client to its server through a link, or past it. What waits in the cut link
// arrives after what was sent later, past it.
type detour struct {
	link   *redisserver.Proxy
	server *redisserver.Server
	past   atomic.Bool
}

func (d *detour) client() *redis.Client {
	return d.server.Client(func(o *redis.Options) {
		o.MaxRetries = -1
		o.ReadTimeout = 2 * time.Second // then it gives the connection up
		o.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
			addr := d.link.Addr()
			if d.past.Load() {
				addr = d.server.Addr()
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	})
}

// hold keeps back what is sent from now on, until heal. New connections go past.
func (d *detour) hold() {
	d.past.Store(true)
	d.link.CutRequests()
}

// heal delivers what was held back and returns when the server has carried out a script of it.
func (d *detour) heal(t *testing.T, eye redis.UniversalClient) {
	t.Helper()
	before := scriptCalls(t, eye)
	d.link.Heal()
	require.Eventually(t, func() bool { return scriptCalls(t, eye) > before }, soon, poll,
		"what was held back arrives")
}

// scriptCalls is how often a server was asked for a script.
func scriptCalls(t *testing.T, eye redis.UniversalClient) int {
	t.Helper()
	stats, err := eye.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	for line := range strings.Lines(stats) {
		if rest, ok := strings.CutPrefix(line, "cmdstat_evalsha:calls="); ok {
			calls, err := strconv.Atoi(rest[:strings.IndexByte(rest, ',')])
			require.NoError(t, err)
			return calls
		}
	}
	return 0
}

// detours makes a fleet of three, a Locker behind a detour to each node, and connections there.
func detours(t *testing.T) ([]*detour, []redis.UniversalClient, *redlock.Locker) {
	t.Helper()
	fleet := redisserver.StartFleet(t, 3)
	ways := make([]*detour, len(fleet))
	clients := make([]redis.UniversalClient, len(fleet))
	for i, server := range fleet {
		ways[i] = &detour{link: server.Proxy(), server: server}
		clients[i] = ways[i].client()
	}
	locker := newLocker(t, clients, atEase()...)
	eyes := fleet.Clients()
	for range 3 { // by the second time, every node knows the scripts
		lease := acquire(t, locker, "warm")
		require.NoError(t, lease.Extend(t.Context()))
		release(t, lease)
	}
	for _, eye := range eyes {
		require.Eventually(t, func() bool { return eye.Exists(t.Context(), lockKey("warm")).Val() == 0 }, soon, poll)
	}
	return ways, eyes, locker
}

// overAt waits until a node knows by its fence that the lease is over there.
func overAt(t *testing.T, eye redis.UniversalClient, name string, token redlock.Token) {
	t.Helper()
	require.Eventually(t, func() bool {
		fence, err := eye.Get(t.Context(), "{"+lockKey(name)+"}:fence").Int64()
		lock := eye.Exists(t.Context(), lockKey(name)).Val()
		return err == nil && fence >= int64(token) && lock == 0
	}, soon, poll, "the release arrives")
}

func TestADelayedAcquireDoesNotBringAReleasedLockBack(t *testing.T) {
	t.Parallel()
	ways, eyes, locker := detours(t)
	ways[2].hold()
	lease := acquire(t, locker, "job")
	require.NoError(t, lease.Release(t.Context()))
	overAt(t, eyes[2], "job", lease.Token())

	ways[2].heal(t, eyes[2])
	require.Equal(t, 3, count(owners(t, eyes, lockKey("job")), ""))
}

func TestADelayedAcquireThatWasGivenUpDoesNotTakeTheNameFromOthers(t *testing.T) {
	t.Parallel()
	ways, eyes, locker := detours(t)
	ways[1].hold()
	ways[2].hold()
	_, err := locker.TryAcquire(t.Context(), "job")
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	overAt(t, eyes[1], "job", 1)
	overAt(t, eyes[2], "job", 1)

	ways[1].heal(t, eyes[1])
	ways[2].heal(t, eyes[2])
	require.Equal(t, 3, count(owners(t, eyes, lockKey("job")), ""))
	other := newLocker(t, eyes, atEase()...)
	lease, err := other.TryAcquire(t.Context(), "job")
	require.NoError(t, err)
	require.NoError(t, lease.Release(t.Context()))
}

func TestADelayedExtendDoesNotBringAReleasedLockBack(t *testing.T) {
	t.Parallel()
	for _, emptied := range []bool{false, true} {
		t.Run(fmt.Sprintf("its node emptied %v", emptied), func(t *testing.T) {
			t.Parallel()
			ways, eyes, locker := detours(t)
			lease := acquire(t, locker, "job")
			require.Eventually(t, func() bool { return count(owners(t, eyes, lockKey("job")), lease.Owner()) == 3 }, soon, poll)
			if emptied {
				require.NoError(t, eyes[2].Del(t.Context(), lockKey("job"), "{"+lockKey("job")+"}:fence").Err())
			}
			ways[2].hold()
			require.NoError(t, lease.Extend(t.Context()))
			require.NoError(t, lease.Release(t.Context()))
			overAt(t, eyes[2], "job", lease.Token())

			ways[2].heal(t, eyes[2])
			require.Equal(t, 3, count(owners(t, eyes, lockKey("job")), ""))
		})
	}
}
