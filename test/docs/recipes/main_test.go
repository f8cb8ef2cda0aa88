package recipes

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// client-go's log library flushes for as long as the process lives.
		goleak.IgnoreAnyFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

// fleetOf is a fleet of n embedded nodes, and a client of each.
func fleetOf(t *testing.T, n int) (*redlocktest.Fleet, []redis.UniversalClient) {
	t.Helper()
	fleet := redlocktest.Start(t, n)
	return fleet, fleet.Clients()
}

// lockerOn is what a replica has: a Locker of its own.
func lockerOn(t *testing.T, fleet *redlocktest.Fleet, opts ...redlock.Option) *redlock.Locker {
	t.Helper()
	locker, err := redlock.New(fleet.Clients(), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, locker.Close()) })
	return locker
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
