package redlock_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

// configErrors are what a constructor may answer with.
var configErrors = []error{redlock.ErrInvalidOption, redlock.ErrTTLTooLong, redlock.ErrTTLTooShort, redlock.ErrInvalidName}

// Whatever the options say, New returns an error that tells what is wrong, or a Locker that works.
func FuzzOptions(f *testing.F) {
	const day = int64(24 * time.Hour)
	ms := int64(time.Millisecond)
	add := func(ttl, maxTTL, nodeTimeout, fenceTTL, margin, minValidity int64, extensions, attempts int, prefix, identity string, trust bool) {
		f.Add(ttl, maxTTL, nodeTimeout, fenceTTL, margin, minValidity, extensions, attempts, prefix, identity, trust)
	}
	add(8000*ms, 10_000*ms, 500*ms, day, 0, 0, 1000, 0, redlock.DefaultKeyPrefix, "host:1", false)
	add(10*ms, 10*ms, 1*ms, 20*ms, 5*ms, 1*ms, 0, 1, "", "a", true)
	add(10*ms+999, 10*ms+999, 1*ms, 20*ms+2000, 5*ms, 7*ms+900_000, 1, 0, "", "a", true)
	add(math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt, math.MaxInt, "p", "i", true)
	add(math.MinInt64, math.MinInt64, math.MinInt64, math.MinInt64, math.MinInt64, math.MinInt64, math.MinInt, math.MinInt, "", "", false)
	add(8000*ms, math.MaxInt64, 500*ms, day, 0, 0, 1, 0, "", "i", false)      // twice the maximum TTL overflows
	add(math.MaxInt64, math.MaxInt64, 500*ms, day, 0, 0, 1, 0, "", "i", true) // and so does the end of the validity
	add(math.MaxInt64/2, math.MaxInt64/2, 500*ms, day, 0, 0, 1, 0, "", "i", true)
	add(100*365*day, 100*365*day, 500*ms, math.MaxInt64, 50*365*day, 0, 1, 0, "", "i", false)
	add(2*3600*1000*ms, 2*3600*1000*ms, 500*ms, day, 0, 0, 1, 0, "", "i", false)
	add(8000*ms, 10_000*ms, 4000*ms, 20_000*ms, 4000*ms, 7000*ms, 1, 1, "{tag}", "with/slash", false)
	add(8000*ms, 10_000*ms, 0, day, 0, 0, 1, 0, "{}", "i", false)
	add(8000*ms, 10_000*ms, 0, day, 0, 0, 1, 0, "a}", "i", false)
	add(8000*ms, 10_000*ms, 0, day, 0, 0, 1, 0, "{", "\xff", false)
	add(8000*ms, 10_000*ms, 0, day, 0, 0, 1, 0, "\x00\n", strings.Repeat("i", 513), false)
	f.Fuzz(func(t *testing.T, ttl, maxTTL, nodeTimeout, fenceTTL, margin, minValidity int64, extensions, attempts int, prefix, identity string, trust bool) {
		opts := []redlock.Option{
			redlock.WithTTL(time.Duration(ttl)), redlock.WithMaxTTL(time.Duration(maxTTL)), redlock.WithNodeTimeout(time.Duration(nodeTimeout)),
			redlock.WithFenceTTL(time.Duration(fenceTTL)), redlock.WithMargin(time.Duration(margin)), redlock.WithMinValidity(time.Duration(minValidity)),
			redlock.WithMaxExtensions(extensions), redlock.WithMaxAttempts(attempts), redlock.WithKeyPrefix(prefix), redlock.WithIdentity(identity),
			redlock.WithLogger(quiet()), redlock.WithClock(redlocktest.NewClock()),
		}
		if trust {
			opts = append(opts, redlock.WithTrustPersistence())
		}
		// Most of what is tried is refused, which needs no fleet.
		idle := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
		_, err := redlock.New([]redis.UniversalClient{idle}, opts...)
		_ = idle.Close()
		if err != nil {
			requireConfigError(t, err)
			return
		}
		require.GreaterOrEqual(t, fenceTTL/2, maxTTL, "a fence must outlive every lease")
		require.LessOrEqual(t, len(identity), redlock.MaxIdentityLength)
		require.True(t, utf8.ValidString(identity))
		synctest.Test(t, func(t *testing.T) { useLocker(t, opts, trust, time.Duration(ttl), time.Duration(maxTTL), extensions) })
	})
}

func requireConfigError(t *testing.T, err error) {
	t.Helper()
	for _, known := range configErrors {
		if errors.Is(err, known) {
			require.Less(t, len(err.Error()), 4000)
			return
		}
	}
	require.NoError(t, err)
}

func useLocker(t *testing.T, opts []redlock.Option, trust bool, ttl, maxTTL time.Duration, extensions int) {
	fleet := redlocktest.Start(t, 1)
	opts = append(opts, redlock.WithClock(redlocktest.NewClock())) // that of the bubble
	l, err := redlock.New(fleet.Clients(), opts...)
	require.NoError(t, err)
	defer l.Close()
	lease, err := l.TryAcquire(t.Context(), "name")
	// What the node's uptime of an hour does not cover, it does not count for.
	if !trust && maxTTL > redlocktest.DefaultUptime-time.Minute {
		if maxTTL > redlocktest.DefaultUptime || err != nil {
			require.ErrorIs(t, err, redlock.ErrQuarantined)
			return
		}
	}
	require.NoError(t, err)
	require.Positive(t, lease.Remaining())
	require.LessOrEqual(t, lease.Remaining(), ttl)
	require.NoError(t, lease.Context().Err())
	if extensions > 0 {
		require.NoError(t, lease.Extend(t.Context()))
	} else {
		require.ErrorIs(t, lease.Extend(t.Context()), redlock.ErrExtensionLimit)
	}
	require.NoError(t, lease.Save(t.Context(), []byte("state")))
	require.NoError(t, lease.Release(t.Context()))
	next, err := l.TryAcquire(t.Context(), "name")
	require.NoError(t, err)
	require.Greater(t, next.Token(), lease.Token(), "the fence lasts")
	require.Equal(t, "state", string(next.State()))
	require.NoError(t, next.Release(t.Context()))
}
