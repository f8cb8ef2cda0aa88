package real_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/test/redisserver"
)

func TestEverybodyWhoWantsAHotNameGetsTurns(t *testing.T) {
	t.Parallel()
	const (
		goroutines = 16 // in two processes
		turns      = 25 // of each
	)
	fleet := redisserver.StartFleet(t, 3)
	lockers := []*redlock.Locker{
		newLocker(t, fleet.Clients(), atEase()...),
		newLocker(t, fleet.Clients(), atEase()...),
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*soon)
	defer cancel()

	var mu sync.Mutex // guards no more than what the lease should: it must never be contended
	last := redlock.Token(0)
	had := make([]int, goroutines)
	var whenFirstWasDone []int
	turn := func(who int, lease *redlock.Lease) {
		if !assert.True(t, mu.TryLock(), "two hold the name") {
			return
		}
		defer mu.Unlock()
		assert.Greater(t, lease.Token(), last)
		last = lease.Token()
		if had[who]++; had[who] == turns && whenFirstWasDone == nil {
			whenFirstWasDone = append(whenFirstWasDone, had...)
		}
	}
	var all sync.WaitGroup
	for who := range goroutines {
		all.Go(func() {
			for range turns {
				lease, err := lockers[who%2].Acquire(ctx, "hot")
				if err != nil {
					t.Errorf("goroutine %d: %v", who, err)
					return
				}
				turn(who, lease)
				release(t, lease)
			}
		})
	}
	all.Wait()
	t.Logf("turns when the first was done: %v", whenFirstWasDone)
	require.NotContains(t, whenFirstWasDone, 0, "somebody had no turn before another had all")
	for _, n := range had {
		require.Equal(t, turns, n)
	}
}
