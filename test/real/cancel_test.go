package real_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/test/redisserver"
)

// tidy is how long a key of a cancelled attempt may stay.
const tidy = 100 * time.Millisecond

// untidy tells what is wrong with how long keys stayed, or "". A few may stay longer, where the machine
// does other things, but not nearly as long as their TTL.
func untidy(stays []time.Duration) string {
	most, longest := quantile(stays, 0.95), quantile(stays, 1)
	if most > tidy || longest > 10*tidy {
		return fmt.Sprintf("keys stayed for %v, 95 of 100 times at most, and once for %v; that should be %v", most, longest, tidy)
	}
	return ""
}

// stray is what lock keys of the names that begin with prefix are on any of the nodes.
func stray(t *testing.T, nodes []redis.UniversalClient, prefix string) []string {
	t.Helper()
	var found []string
	for i, node := range nodes {
		keys, err := node.Keys(t.Context(), lockKey(prefix)+"*").Result()
		require.NoError(t, err)
		for _, key := range keys {
			found = append(found, fmt.Sprintf("%s on node %d", key, i))
		}
	}
	return found
}

// lastStray watches for a while and tells how long after since a stray key was last there. A
// key that stays for half its TTL is no noise of the machine, and fails the test.
func lastStray(t *testing.T, nodes []redis.UniversalClient, prefix string, since time.Time, watch time.Duration) (last time.Duration) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		began := time.Since(since)
		found := stray(t, nodes, prefix)
		if len(found) > 0 {
			last = began
			require.Less(t, last, redlock.DefaultTTL/2+watch, "still there: %v", found)
		} else if began > watch {
			return last
		}
		<-tick.C
	}
}

func TestAnAcquireCancelledAtAnyMomentLeavesNoKey(t *testing.T) {
	fleet := redisserver.StartFleet(t, 5)
	eyes := fleet.Clients()
	locker := newLocker(t, fleet.Clients(), redlock.WithTrustPersistence())
	var took []time.Duration
	for range 100 {
		start := time.Now()
		lease := acquire(t, locker, "warm")
		took = append(took, time.Since(start))
		release(t, lease)
	}
	// Some are cancelled before the first byte, some when all is over, most in between.
	span := median(took) * 5 / 4

	n := 0
	measured(t, func() string {
		var stays []time.Duration
		cancelled, won := 0, 0
		for i := range 500 {
			n++
			name := fmt.Sprintf("cancelled-%d", n)
			ctx, cancel := context.WithCancel(t.Context())
			switch i % 50 {
			case 0:
				cancel()
			case 1: // never
			default:
				time.AfterFunc(rand.N(span), cancel)
			}
			lease, err := locker.Acquire(ctx, name)
			since := time.Now()
			if err != nil {
				require.ErrorIs(t, err, context.Canceled)
				cancelled++
				stays = append(stays, lastStray(t, eyes, name, since, 0))
			} else {
				won++
				require.NoError(t, lease.Err(), "the context of an Acquire that has returned ends nothing")
				release(t, lease)
			}
			cancel()
		}
		// An acquire that a node carries out late would show only now.
		stays = append(stays, lastStray(t, eyes, "cancelled-", time.Now(), tidy))
		t.Logf("%d cancelled, %d won before that; a key was last seen %v after the return", cancelled, won, quantile(stays, 1))
		require.Positive(t, won)
		require.Greater(t, cancelled, 50)
		return untidy(stays)
	})
}

func TestAWaiterCancelledWhenItsTurnComesLeavesNoKey(t *testing.T) {
	fleet := redisserver.StartFleet(t, 5)
	eyes := fleet.Clients()
	holder := newLocker(t, fleet.Clients(), redlock.WithTrustPersistence())
	waiter := newLocker(t, fleet.Clients(), redlock.WithTrustPersistence())
	n := 0
	measured(t, func() string {
		var stays []time.Duration
		cancelled, won := 0, 0
		for range 100 {
			n++
			name := fmt.Sprintf("turn-%d", n)
			lease := acquire(t, holder, name)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				lease, err := waiter.Acquire(ctx, name)
				if err == nil {
					release(t, lease)
				}
				done <- err
			}()
			require.Eventually(t, func() bool { // it listens for the release
				subscribers, err := eyes[0].PubSubNumSub(t.Context(), lockKey(name)).Result()
				return err == nil && subscribers[lockKey(name)] == 1
			}, soon, time.Millisecond)
			time.AfterFunc(rand.N(5*time.Millisecond), cancel)
			release(t, lease)
			if err := <-done; err != nil {
				require.ErrorIs(t, err, context.Canceled)
				cancelled++
			} else {
				won++
			}
			cancel()
			stays = append(stays, lastStray(t, eyes, name, time.Now(), 0))
		}
		stays = append(stays, lastStray(t, eyes, "turn-", time.Now(), tidy))
		t.Logf("%d cancelled, %d won before that; a key was last seen %v after the return", cancelled, won, quantile(stays, 1))
		return untidy(stays)
	})
}

func TestAnAcquireCancelledWhileANodeHangsLeavesNoKeyWhenTheNodeIsBack(t *testing.T) {
	fleet := redisserver.StartFleet(t, 5)
	eyes := fleet.Clients()
	for _, hang := range []struct {
		name string
		d    time.Duration
	}{
		{"shorter than the client's read timeout", time.Second},
		{"longer than the client's read timeout", 4500 * time.Millisecond},
	} {
		t.Run(hang.name, func(t *testing.T) {
			locker := newLocker(t, fleet.Clients(), redlock.WithTrustPersistence())
			n := 0
			measured(t, func() string {
				prefix := fmt.Sprintf("hung-%v-", hang.d)
				release(t, acquire(t, locker, "warm"))
				// With nothing under way, the next attempt reaches the node's socket.
				fleet[2].Pause()
				paused := time.Now()
				healthy := []redis.UniversalClient{eyes[0], eyes[1], eyes[3], eyes[4]}
				var stays []time.Duration
				for time.Since(paused) < hang.d {
					n++
					name := fmt.Sprintf("%s%d", prefix, n)
					ctx, cancel := context.WithTimeout(t.Context(), rand.N(3*time.Millisecond))
					lease, err := locker.Acquire(ctx, name)
					since := time.Now()
					cancel()
					if err == nil {
						release(t, lease)
					}
					stays = append(stays, lastStray(t, healthy, name, since, 0))
					pass(t, rand.N(20*time.Millisecond))
				}
				fleet[2].Resume()
				back := lastStray(t, eyes, prefix, time.Now(), 2*time.Second)
				t.Logf("%d attempts; a key was last seen %v after the return, and %v after the node's", n, quantile(stays, 1), back)
				if back > 10*tidy {
					return fmt.Sprintf("a key stayed for %v after the node's return, longer than %v", back, 10*tidy)
				}
				return untidy(stays)
			})
		})
	}
}
