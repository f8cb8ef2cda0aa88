package redlock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/quorum"
	"github.com/quorate/quorate/redlock"
)

// Performance, crash-recovery and fsync: "the strategy to talk with the N Redis servers to reduce
// latency is definitely multiplexing".
func TestSpecManyLocksShareTheirRoundTrips(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a := w.locker("a")
		w.warm(a)
		w.delay(10 * time.Millisecond)
		before, begin := w.fleet.Commands(0), time.Now()
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				if _, err := a.Acquire(t.Context(), fmt.Sprint("resource ", i)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		require.LessOrEqual(t, time.Since(begin), 20*time.Millisecond, "two round trips for all of them")
		synctest.Wait()
		require.Equal(t, 200, w.fleet.Commands(0)-before, "one command for each, on each node")
	})
}

// Performance, crash-recovery and fsync: "A client acquires the lock in 3 of 5 instances. One of the
// instances where the client was able to acquire the lock is restarted, at this point there are again
// 3 instances that we can lock for the same resource, and another client can lock it again, violating
// the safety property".
func TestSpecAnInstanceThatForgotALockDoesNotGiveItToAnother(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		w.warm(a, b)
		w.fleet.Host("a").Partition(3, 4)
		lease := w.acquire(a, "resource")
		w.fleet.RestartEmpty(2)
		for lease.Err() == nil {
			_, err := b.TryAcquire(t.Context(), "resource")
			require.Error(t, err)
			time.Sleep(50 * time.Millisecond)
		}
		require.NoError(t, w.acquire(b, "resource").Release(t.Context()))
		w.fleet.Host("a").Heal()
	})
}

// Performance, crash-recovery and fsync: "Because Redis expires are semantically implemented so that
// virtually the time still elapses when the server is off, all our requirements are fine."
func TestSpecACleanRestartWithPersistenceKeepsLocksAndTheirTime(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a", redlock.WithTrustPersistence())
		b := w.locker("b", redlock.WithTrustPersistence())
		lease := w.acquire(a, "resource")
		synctest.Wait()
		for i := range 3 {
			w.fleet.Stop(i)
		}
		time.Sleep(2 * time.Second)
		for i := range 3 {
			w.fleet.Restart(i)
		}
		require.Equal(t, 6*time.Second, w.fleet.TTL(0, redlock.DefaultKeyPrefix+"resource"), "the time has elapsed while it was off")
		next := w.acquire(b, "resource")
		require.Error(t, lease.Err(), "the holder had its time")
		require.NoError(t, next.Release(t.Context()))
	})
}

// Performance, crash-recovery and fsync: "we need to enable fsync=always in the persistence setting."
func TestSpecWhereNothingIsLostARestartedInstanceCountsAtOnce(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		trusting, careful := w.locker("a", redlock.WithTrustPersistence()), w.locker("b")
		w.warm(trusting, careful)
		w.fleet.Restart(0)
		time.Sleep(time.Second)
		_, err := careful.TryAcquire(t.Context(), "resource")
		require.ErrorIs(t, err, redlock.ErrQuarantined)
		synctest.Wait() // until that is withdrawn
		lease, err := trusting.TryAcquire(t.Context(), "resource")
		require.NoError(t, err)
		require.NoError(t, lease.Release(t.Context()))
	})
}

// Performance, crash-recovery and fsync: "when an instance restarts after a crash, it no longer
// participates to any currently active lock".
func TestSpecARestartedInstanceTakesNoPartInActiveLocks(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		w.warm(a)
		w.fleet.RestartEmpty(0)
		w.fleet.Stop(1)
		_, err := a.TryAcquire(t.Context(), "resource")
		var failed *redlock.QuorumError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, 1, failed.Votes, "the restarted instance has accepted, and that does not count")
		require.Contains(t, err.Error(), "restarted lately")
	})
}

// Performance, crash-recovery and fsync: "make an instance, after a crash, unavailable for at least a
// bit more than the max TTL we use".
func TestSpecARestartedInstanceCountsOnlyABitMoreThanTheMaximumTTLLater(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		a := w.locker("a")
		w.warm(a)
		w.fleet.RestartEmpty(0)
		begin := time.Now()
		lease := w.acquire(a, "resource")
		require.GreaterOrEqual(t, time.Since(begin), redlock.DefaultMaxTTL+quorum.Drift(redlock.DefaultMaxTTL))
		require.Less(t, time.Since(begin), redlock.DefaultMaxTTL+3*time.Second)
		require.NoError(t, lease.Release(t.Context()))
		_, err := a.TryAcquire(t.Context(), "resource", redlock.WithTTL(redlock.DefaultMaxTTL+time.Millisecond))
		require.ErrorIs(t, err, redlock.ErrTTLTooLong, "a longer lease could outlive the wait")
	})
}

// Performance, crash-recovery and fsync: "if a majority of instances crash, the system will become
// globally unavailable for TTL (here globally means that no resource at all will be lockable during
// this time)."
func TestSpecAfterTheCrashOfAMajorityNothingIsLockableForTheTTL(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a := w.locker("a")
		w.warm(a)
		for i := range 3 {
			w.fleet.RestartEmpty(i)
		}
		begin := time.Now()
		for i := 0; time.Since(begin) < redlock.DefaultMaxTTL; i++ {
			_, err := a.TryAcquire(t.Context(), fmt.Sprint("resource ", i))
			require.Error(t, err, "after %v", time.Since(begin))
			time.Sleep(500 * time.Millisecond)
		}
		require.NoError(t, w.acquire(a, "resource").Release(t.Context()))
		require.Less(t, time.Since(begin), redlock.DefaultMaxTTL+3*time.Second)
	})
}

// Extending the lock: "it is possible to use smaller lock validity times by default, and extend the
// algorithm implementing a lock extension mechanism."
func TestSpecWorkMayOutlastTheTTLByExtension(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a, b := w.locker("a", redlock.WithTTL(time.Second)), w.locker("b")
		require.NoError(t, a.Do(t.Context(), "resource", func(ctx context.Context, _ *redlock.Lease) error {
			for range 20 {
				time.Sleep(time.Second)
				_, err := b.TryAcquire(t.Context(), "resource")
				require.ErrorIs(t, err, redlock.ErrTaken)
			}
			return ctx.Err()
		}))
	})
}

// Extending the lock: "by sending a Lua script to all the instances that extends the TTL of the key if
// the key exists and its value is still the random value the client assigned".
func TestSpecAnExtensionRenewsOurKeysAndNoOthers(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a := w.locker("a")
		w.foreign("resource", 5*time.Second, 0)
		lease := w.acquire(a, "resource")
		time.Sleep(2 * time.Second)
		require.NoError(t, lease.Extend(t.Context()))
		synctest.Wait()
		require.Equal(t, 3*time.Second, w.fleet.TTL(0, redlock.DefaultKeyPrefix+"resource"), "it is another's")
		for i := 1; i < 5; i++ {
			require.Equal(t, redlock.DefaultTTL, w.fleet.TTL(i, redlock.DefaultKeyPrefix+"resource"))
		}
		require.Equal(t, validity, lease.Remaining())
		require.NoError(t, lease.Release(t.Context()))
	})
}

// Extending the lock: "The client should only consider the lock re-acquired if it was able to extend
// the lock into the majority of instances".
func TestSpecAnExtensionNeedsTheMajority(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a := w.locker("a")
		w.warm(a)
		lease := w.acquire(a, "resource")
		time.Sleep(time.Second)
		w.fleet.Host("a").Partition(0, 1)
		require.NoError(t, lease.Extend(t.Context()))
		time.Sleep(time.Second)
		w.fleet.Host("a").Partition(2)
		left := lease.Remaining()
		require.ErrorIs(t, lease.Extend(t.Context()), redlock.ErrNoQuorum)
		require.LessOrEqual(t, lease.Remaining(), left, "two nodes were extended, and that is nothing")
		<-lease.Context().Done()
		require.ErrorIs(t, lease.Err(), redlock.ErrLeaseExpired)
		w.fleet.Host("a").Heal()
	})
}

// Extending the lock: "and within the validity time (basically the algorithm to use is very similar to
// the one used when acquiring the lock)."
func TestSpecAnExtensionCountsOnlyWithinTheValidity(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		w.warm(a)
		w.delay(100 * time.Millisecond)
		lease := w.acquire(a, "resource")
		time.Sleep(lease.Remaining() - 100*time.Millisecond - time.Nanosecond)
		require.NoError(t, lease.Extend(t.Context()), "decided a nanosecond before the end")
		require.Equal(t, validity-100*time.Millisecond, lease.Remaining(), "its time elapsed counts as well")
		time.Sleep(lease.Remaining() - 100*time.Millisecond + time.Nanosecond)
		require.ErrorIs(t, lease.Extend(t.Context()), redlock.ErrLeaseExpired, "a nanosecond after it")

		lease = w.acquire(a, "other")
		// The machine sleeps while the answers are on their way, and no timer has told so yet.
		time.AfterFunc(90*time.Millisecond, func() { w.clock("a").Suspend(lease.Remaining()) })
		require.ErrorIs(t, lease.Extend(t.Context()), redlock.ErrLeaseExpired)
		require.ErrorIs(t, lease.Err(), redlock.ErrLeaseExpired)
	})
}

// Extending the lock: "the maximum number of lock reacquisition attempts should be limited, otherwise
// one of the liveness properties is violated."
func TestSpecExtensionsAreLimitedSoThatOthersHaveTheirTurn(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		const most = 60
		lease := w.acquire(a, "resource", redlock.WithAutoExtend(true), redlock.WithMaxExtensions(most)) // by a client that never ends
		begin := time.Now()
		next := w.acquire(b, "resource")
		require.ErrorIs(t, lease.Err(), redlock.ErrExtensionLimit)
		require.InDelta(t, redlock.DefaultTTL/3*most+redlock.DefaultTTL, time.Since(begin), float64(3*time.Second))
		require.NoError(t, next.Release(t.Context()))

		unbounded := redlock.DefaultMaxExtensions // where nobody says a number
		require.Positive(t, unbounded)
		lease = w.acquire(a, "other")
		for range unbounded {
			require.NoError(t, lease.Extend(t.Context()))
		}
		require.ErrorIs(t, lease.Extend(t.Context()), redlock.ErrExtensionLimit)
	})
}
