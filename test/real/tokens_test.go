package real_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
	"github.com/quorate/quorate/test/redisserver"
)

// newHost makes a Locker on a host whose wall clock is off.
func newHost(t *testing.T, fleet redisserver.Fleet, off time.Duration, opts ...redlock.Option) *redlock.Locker {
	t.Helper()
	clock := redlocktest.NewClock()
	clock.Skew(off)
	return newLocker(t, fleet.Clients(), append(opts, redlock.WithClock(clock))...)
}

// alternate has the hosts acquire and release a name in turn, and returns the last token.
func alternate(t *testing.T, hosts []*redlock.Locker, times int, last redlock.Token) redlock.Token {
	t.Helper()
	for i := range times {
		lease, err := hosts[i%len(hosts)].Acquire(t.Context(), "job")
		require.NoErrorf(t, err, "acquisition %d", i)
		require.Greaterf(t, lease.Token(), last, "token of acquisition %d", i)
		last = lease.Token()
		release(t, lease)
	}
	return last
}

func TestTokensGrowThoughTheClocksOfTheHostsAreTenMinutesApart(t *testing.T) {
	t.Parallel()
	fleet := redisserver.StartFleet(t, 3)
	hosts := []*redlock.Locker{
		newHost(t, fleet, 0, atEase()...),
		newHost(t, fleet, 10*time.Minute, atEase()...),
	}
	last := alternate(t, hosts, 10_000, 0)
	// Some nodes emptied: the others remember, as long as they are a majority.
	require.NoError(t, fleet[0].Client().FlushAll(t.Context()).Err())
	alternate(t, hosts, 100, last)
}

func TestTokensGrowThoughTwoNodesAreEmptiedGivenSaneClocks(t *testing.T) {
	t.Parallel()
	const maxTTL = time.Second
	fleet := redisserver.StartFleet(t, 3) // two of them are a majority: only the clocks are left
	opts := []redlock.Option{redlock.WithMaxTTL(maxTTL), redlock.WithTTL(maxTTL), redlock.WithNodeTimeout(maxTTL / 2)}
	hosts := []*redlock.Locker{newHost(t, fleet, 0, opts...), newHost(t, fleet, 50*time.Millisecond, opts...)}
	awaitServing(t, hosts...)
	last := redlock.Token(0)
	for i := range 3 {
		last = alternate(t, hosts, 301, last)
		restartEmpty(fleet[i], fleet[(i+1)%len(fleet)])
		// Nobody asks for the name in the quarantine, so nobody tells them its fence.
		awaitServing(t, hosts...)
	}
	alternate(t, hosts, 301, last)
}
