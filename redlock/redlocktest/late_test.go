package redlocktest_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock/redlocktest"
)

func TestALateRequestArrivesAfterALaterOneOnANewConnection(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		host := f.Host("h")
		c := redis.NewClient(&redis.Options{
			Addr: f.Addrs()[0], Dialer: host.Dial, ReadTimeout: 100 * time.Millisecond, MaxRetries: -1,
		})
		defer func() { require.NoError(t, c.Close()) }()
		require.NoError(t, c.Ping(t.Context()).Err())

		f.DelayRequests(0, 2*time.Second)
		require.Error(t, c.Set(t.Context(), "k", "early", 0).Err(), "given up")
		f.DelayRequests(0, 0)
		require.NoError(t, c.Set(t.Context(), "k", "late", 0).Err())
		got, _ := f.Get(0, "k")
		assert.Equal(t, "late", got)

		time.Sleep(3 * time.Second)
		got, _ = f.Get(0, "k")
		assert.Equal(t, "early", got, "what was given up still arrives")
	})
}

func TestAnObserverSeesWhatClientsSendAndNotWhatScriptsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		seen := map[int][][]string{}
		f := redlocktest.Start(t, 2, redlocktest.WithObserver(func(node int, args []string) {
			mu.Lock()
			defer mu.Unlock()
			seen[node] = append(seen[node], args)
		}))
		c := f.Clients()[1]
		require.NoError(t, c.Eval(t.Context(), `return redis.call('SET', KEYS[1], 'v')`, []string{"k"}).Err())
		require.NoError(t, c.Get(t.Context(), "k").Err())
		mu.Lock()
		defer mu.Unlock()
		assert.Empty(t, seen[0])
		names := map[string]int{}
		for _, args := range seen[1] {
			names[args[0]]++
		}
		assert.Equal(t, 1, names["EVAL"])
		assert.Zero(t, names["SET"])
		assert.True(t, slices.ContainsFunc(seen[1], func(args []string) bool { return slices.Equal(args, []string{"GET", "k"}) }))
	})
}
