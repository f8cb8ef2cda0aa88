package real_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/test/redisserver"
)

// ownGoroutines are the goroutines that run in package redlock, or were started there.
func ownGoroutines() []string {
	buf := make([]byte, 4<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var own []string
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		if strings.Contains(stack, "github.com/quorate/quorate/redlock.") {
			own = append(own, stack)
		}
	}
	return own
}

// It runs alone, because it looks at all goroutines.
func TestCloseLeavesNoGoroutineAndTakesBoundedTime(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault func(redisserver.Fleet, redisserver.Links)
		limit time.Duration
	}{
		{"with all well", func(redisserver.Fleet, redisserver.Links) {}, 5 * time.Second},
		{"with a node killed", func(f redisserver.Fleet, _ redisserver.Links) { f[0].Kill() }, 10 * time.Second},
		// A call into a client with default options comes back after 3 s to 5 s.
		{"with a node hung", func(f redisserver.Fleet, _ redisserver.Links) { f[0].Pause() }, 20 * time.Second},
		{"with all links cut", func(_ redisserver.Fleet, l redisserver.Links) { l.Cut() }, 20 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			fleet := redisserver.StartFleet(t, 3)
			links := fleet.Links()
			before := goleak.IgnoreCurrent() // the servers' and the links' own
			clients := links.Clients()
			locker := newLocker(t, clients, redlock.WithTrustPersistence())

			// Held leases, extended and not, waiters in line and at the head, and a second
			// process that holds what the first waits for.
			held := []*redlock.Lease{
				acquire(t, locker, "held"),
				acquire(t, locker, "extended", redlock.WithAutoExtend(true)),
			}
			others := fleet.Clients()
			other := newLocker(t, others, redlock.WithTrustPersistence())
			acquire(t, other, "theirs")
			var callers sync.WaitGroup
			for _, name := range []string{"theirs", "theirs", "held", "extended"} {
				callers.Go(func() { _, _ = locker.Acquire(context.Background(), name) })
			}
			require.Eventually(t, func() bool {
				n, err := others[1].PubSubNumSub(t.Context(), lockKey("theirs")).Result()
				return err == nil && n[lockKey("theirs")] == 1
			}, soon, poll)
			require.NoError(t, other.Close())

			test.fault(fleet, links)
			// What was in flight when the fault came: a release, an extension, an attempt.
			callers.Go(func() { _ = held[0].Release(context.Background()) })
			callers.Go(func() { _, _ = locker.TryAcquire(context.Background(), "attempt") })
			callers.Go(func() { _, _ = locker.Check(context.Background()) })
			callers.Go(func() { _, _ = locker.Inspect(context.Background(), "theirs") })
			callers.Go(func() { _ = held[1].Extend(context.Background()) })
			pass(t, 50*time.Millisecond)

			start := time.Now()
			require.NoError(t, locker.Close())
			took := time.Since(start)
			t.Logf("Close took %v", took)
			require.Less(t, took, test.limit)
			callers.Wait() // everybody who called was let go

			require.ErrorIs(t, context.Cause(held[1].Context()), redlock.ErrClosed)
			_, err := locker.TryAcquire(t.Context(), "late")
			require.ErrorIs(t, err, redlock.ErrClosed)
			// A goroutine that has said its last word needs a moment to be gone.
			for gone := time.Now(); len(ownGoroutines()) > 0 && time.Since(gone) < soon; {
				pass(t, poll)
			}
			require.Empty(t, ownGoroutines())

			// With the clients closed, nothing of theirs is left that was ours to end.
			for _, c := range append(append([]redis.UniversalClient{}, clients...), others...) {
				require.NoError(t, c.Close())
			}
			for i := range fleet {
				links[i].Close()
			}
			require.NoError(t, goleak.Find(before))
		})
	}
}
