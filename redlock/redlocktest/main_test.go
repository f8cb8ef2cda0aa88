package redlocktest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/redlock/redlocktest"
)

func TestMain(m *testing.M) {
	logging.Disable() // go-redis reports each dial that a fault makes fail
	goleak.VerifyTestMain(m)
}

// inBubble runs a test with a fleet on fake time.
func inBubble(t *testing.T, n int, test func(t *testing.T, f *redlocktest.Fleet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, redlocktest.Start(t, n)) })
}

// impatient returns a client of node i that gives up when its context ends and
// never retries, for tests of one attempt.
func impatient(t *testing.T, h *redlocktest.Host, f *redlocktest.Fleet, i int) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{
		Addr: f.Addrs()[i], Dialer: h.Dial,
		ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1,
	})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func set(t *testing.T, c redis.Cmdable, key, value string, ttl time.Duration) {
	t.Helper()
	require.NoError(t, c.Set(t.Context(), key, value, ttl).Err())
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
