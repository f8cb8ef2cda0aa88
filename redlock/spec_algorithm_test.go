package redlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

// The Redlock algorithm: "we assume we have N Redis masters. Those nodes are totally independent, so
// we don't use replication or any other implicit coordination system."
func TestSpecNodesThatAreOneServerAreRefused(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *world) {
		addrs, host := w.fleet.Addrs(), w.fleet.Host("a")
		var clients []redis.UniversalClient
		for _, c := range []struct{ shown, real string }{{"10.9.9.1:1", addrs[0]}, {"10.9.9.2:1", addrs[0]}, {"10.9.9.3:1", addrs[1]}} {
			clients = append(clients, redis.NewClient(&redis.Options{Addr: c.shown, Dialer: dialTo(host, c.real)}))
		}
		l, err := redlock.New(clients, redlock.WithClock(w.clock("a")), redlock.WithLogger(quiet()))
		require.NoError(t, err, "two addresses say nothing")
		_, err = l.TryAcquire(t.Context(), "resource")
		require.ErrorIs(t, err, redlock.ErrSameServer, "but their run_id does")
		require.NoError(t, l.Close())
		for _, c := range clients {
			require.NoError(t, c.Close())
		}
	})
}

// The Redlock algorithm, step 1: "It gets the current time", before it asks the first node: what
// the nodes take is taken off the validity, however little of it is the network's.
func TestSpecTheTimeIsTakenBeforeTheFirstNodeIsAsked(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		w.warm(a)
		w.delay(50 * time.Millisecond)
		// The machine sleeps while the answers are on their way.
		time.AfterFunc(10*time.Millisecond, func() { w.clock("a").Suspend(time.Second) })
		lease := w.acquire(a, "resource")
		require.LessOrEqual(t, lease.Remaining(), validity-1050*time.Millisecond)
	})
}

// The Redlock algorithm, step 2: "using the same key name and random value in all the instances".
func TestSpecAllInstancesHaveTheSameKeyAndValue(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		lease := w.acquire(w.locker("a"), "resource")
		synctest.Wait()
		o := lease.Owner()
		require.Equal(t, []string{o, o, o, o, o}, w.ownersOf("resource"))
	})
}

// The Redlock algorithm, step 2: "the client uses a timeout which is small compared to the total
// lock auto-release time".
func TestSpecTheTimeoutOfANodeIsSmallComparedToTheTTL(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		for ttl, most := range map[time.Duration]time.Duration{
			10 * time.Second: 500 * time.Millisecond, 400 * time.Millisecond: 100 * time.Millisecond,
		} {
			a := w.locker("a", redlock.WithTTL(ttl))
			w.warm(a)
			for i := range 3 {
				w.fleet.Hang(i)
			}
			begin := time.Now()
			_, err := a.TryAcquire(t.Context(), "resource")
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
			require.Equal(t, most, time.Since(begin), "with a TTL of %v", ttl)
			for i := range 3 {
				w.fleet.Resume(i)
			}
		}
		_, err := redlock.New(w.fleet.Clients(), redlock.WithNodeTimeout(redlock.DefaultTTL))
		require.ErrorIs(t, err, redlock.ErrInvalidOption)
	})
}

// The Redlock algorithm, step 2: "This prevents the client from remaining blocked for a long time
// trying to talk with a Redis node which is down".
func TestSpecANodeThatIsDownDoesNotBlockTheClient(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a := w.locker("a")
		w.warm(a)
		w.delay(5 * time.Millisecond)
		w.fleet.Hang(0)
		w.fleet.Partition(1)
		begin := time.Now()
		lease := w.acquire(a, "resource")
		require.Equal(t, 5*time.Millisecond, time.Since(begin), "one round trip, as with all nodes")
		require.NoError(t, lease.Release(t.Context()))
		require.Equal(t, 10*time.Millisecond, time.Since(begin))
		w.fleet.Resume(0)
		w.fleet.Heal()
	})
}

// The Redlock algorithm, step 3: "If and only if the client was able to acquire the lock in the
// majority of the instances (at least 3), […] the lock is considered to be acquired."
func TestSpecTheLockIsAcquiredIfAndOnlyIfTheMajorityAccepted(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a := w.locker("a")
		for others := range 6 {
			var nodes []int
			for i := range others {
				nodes = append(nodes, i)
			}
			w.foreign("resource", 5*time.Second, nodes...)
			lease, err := a.TryAcquire(t.Context(), "resource")
			synctest.Wait()
			if 5-others >= 3 {
				require.NoError(t, err, "%d nodes have another's lock", others)
				require.Equal(t, 5-others, w.lockedBy(lease))
				require.NoError(t, lease.Release(t.Context()))
			} else {
				require.ErrorIs(t, err, redlock.ErrTaken, "%d nodes have another's lock", others)
			}
			time.Sleep(5 * time.Second)
		}
	})
}

// The Redlock algorithm, step 3: "and the total time elapsed to acquire the lock is less than lock
// validity time".
func TestSpecTheLockIsNotAcquiredWhenThatTookTheWholeValidity(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a", redlock.WithMinValidity(time.Millisecond))
		w.warm(a)
		w.delay(20 * time.Millisecond)
		for elapsed, acquired := range map[time.Duration]bool{
			validity - time.Millisecond: true,
			validity:                    false,
			validity + time.Hour:        false,
		} {
			time.AfterFunc(10*time.Millisecond, func() { w.clock("a").Suspend(elapsed - 20*time.Millisecond) })
			lease, err := a.TryAcquire(t.Context(), "resource")
			if acquired {
				require.NoError(t, err, "after %v", elapsed)
				require.Equal(t, time.Millisecond, lease.Remaining())
				require.NoError(t, lease.Release(t.Context()))
			} else {
				require.ErrorIs(t, err, redlock.ErrNoValidity, "after %v", elapsed)
			}
			time.Sleep(time.Second)
		}
	})
}

// The Redlock algorithm, step 4: "its validity time is considered to be the initial validity time
// minus the time elapsed".
func TestSpecTheValidityIsTheInitialOneMinusTheTimeElapsed(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a := w.locker("a")
		w.warm(a)
		for _, elapsed := range []time.Duration{0, time.Millisecond, 100 * time.Millisecond, 450 * time.Millisecond} {
			w.delay(elapsed)
			lease := w.acquire(a, "resource")
			require.Equal(t, validity-elapsed, lease.Remaining())
			require.NoError(t, lease.Release(t.Context()))
			time.Sleep(time.Second)
		}
	})
}

// The Redlock algorithm, step 5: "If the client failed to acquire the lock for some reason (either it
// was not able to lock N/2+1 instances or the validity time is negative), it will try to unlock all
// the instances".
func TestSpecAFailedAttemptUnlocksAllInstances(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a := w.locker("a")
		w.warm(a)
		w.foreign("resource", time.Hour, 0, 1, 2)
		_, err := a.TryAcquire(t.Context(), "resource")
		require.ErrorIs(t, err, redlock.ErrTaken)
		synctest.Wait()
		require.Equal(t, []string{"foreign", "foreign", "foreign", "", ""}, w.ownersOf("resource"))

		w.delay(20 * time.Millisecond)
		time.AfterFunc(10*time.Millisecond, func() { w.clock("a").Suspend(redlock.DefaultTTL) })
		_, err = a.TryAcquire(t.Context(), "other")
		require.ErrorIs(t, err, redlock.ErrNoValidity)
		time.Sleep(20 * time.Millisecond)
		require.Zero(t, w.lockedOn("other"))
	})
}

// The Redlock algorithm, step 5: "(even the instances it believed it was not able to lock)".
func TestSpecAFailedAttemptUnlocksAlsoInstancesThatItBelievedNotLocked(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		w.warm(a)
		w.foreign("resource", time.Hour, 0)
		w.fleet.Delay(1, 2*time.Second) // accepts, and the answer comes too late to count
		w.fleet.Delay(2, 2*time.Second)
		_, err := a.TryAcquire(t.Context(), "resource")
		require.ErrorIs(t, err, redlock.ErrNodeTimeout)
		require.Equal(t, 3, w.lockedOn("resource"))
		w.delay(0)
		time.Sleep(4 * time.Second)
		require.Equal(t, []string{"foreign", "", ""}, w.ownersOf("resource"), "long before the TTL has passed")
	})
}

// Is the algorithm asynchronous?: "there is no synchronized clock across the processes".
func TestSpecClocksThatDisagreeByYearsChangeNothing(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		for i, skew := range []time.Duration{0, time.Hour, -time.Hour, 24 * 365 * time.Hour, -24 * 365 * time.Hour} {
			w.fleet.SkewClock(i, skew)
		}
		w.clock("b").Skew(-24 * 365 * time.Hour)
		// Nodes that are set back seem to have started just now, and do not count at first: the other
		// three do.
		for range 3 {
			lease := w.acquire(a, "resource")
			require.Equal(t, validity, lease.Remaining())
			begin := time.Now()
			next := w.acquire(b, "resource")
			require.Greater(t, time.Since(begin), validity)
			require.Error(t, lease.Err())
			require.Greater(t, next.Token(), lease.Token())
			require.NoError(t, next.Release(t.Context()))
		}
	})
}

// Is the algorithm asynchronous?: "the local time in every process flows approximately at the same
// rate, with an error which is small compared to the auto-release time of the lock."
func TestSpecNodesWhoseClocksRunOnePercentFastKeepTheLockForItsValidity(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		for i := range 5 {
			w.fleet.ClockRate(i, 1.01)
		}
		lease := w.acquire(w.locker("a"), "resource")
		synctest.Wait()
		<-lease.Context().Done()
		require.Equal(t, 5, w.lockedBy(lease))
		time.Sleep(redlock.DefaultTTL / 50)
		require.Zero(t, w.lockedBy(lease), "they do run fast")
	})
}

// Is the algorithm asynchronous?: "only as long as the client holding the lock will terminate its
// work within the lock validity time (as obtained in step 3), minus some time (just a few
// milliseconds in order to compensate for clock drift between processes)."
func TestSpecTheValidityIsShortenedForClockDrift(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		a := w.locker("a")
		for ttl, drift := range map[time.Duration]time.Duration{
			100 * time.Millisecond: 3 * time.Millisecond, 10 * time.Second: 102 * time.Millisecond,
		} {
			lease := w.acquire(a, "resource", redlock.WithTTL(ttl))
			require.Equal(t, ttl-drift, lease.Remaining())
			require.NoError(t, lease.Release(t.Context()))
		}
	})
}

// Retry on failure: "it should try again after a random delay in order to try to desynchronize
// multiple clients".
func TestSpecRetriesComeAfterRandomDelays(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		w.foreign("resource", time.Hour, 0, 1, 2)
		a, first := w.watched("a")
		b, second := w.watched("b")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		for _, l := range []*redlock.Locker{a, b} {
			wg.Go(func() { _, _ = l.Acquire(ctx, "resource") })
		}
		wg.Wait()
		require.Greater(t, len(first.gaps()), 5)
		require.NotEqual(t, first.gaps()[:5], second.gaps()[:5])
	})
}

// Retry on failure: "(this may result in a split brain condition where nobody wins)".
func TestSpecClientsThatSplitTheVotesSettle(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		lockers := []*redlock.Locker{w.locker("a"), w.locker("b")}
		w.warm(lockers...)
		// Each reaches two nodes that the other does not, and both meet at the fifth.
		w.fleet.Host("a").Partition(0, 1)
		w.fleet.Host("b").Partition(2, 3)
		w.delay(3 * time.Millisecond)
		begin := time.Now()
		var wg sync.WaitGroup
		for _, l := range lockers {
			wg.Go(func() {
				for range 3 {
					lease, err := l.Acquire(t.Context(), "resource")
					if err != nil {
						t.Error(err)
						return
					}
					if err := lease.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		require.Less(t, time.Since(begin), redlock.DefaultTTL)
		w.fleet.Host("a").Heal()
		w.fleet.Host("b").Heal()
	})
}

// Retry on failure: "ideally the client should try to send the SET commands to the N instances at
// the same time using multiplexing."
func TestSpecAllInstancesAreAskedAtTheSameTime(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a := w.locker("a")
		w.warm(a)
		for i := range 5 {
			w.fleet.Delay(i, time.Duration(20-i)*time.Millisecond)
		}
		begin := time.Now()
		lease := w.acquire(a, "resource")
		require.Equal(t, 18*time.Millisecond, time.Since(begin), "as long as the third of the answers, not as all of them together")
		require.NoError(t, lease.Release(t.Context()))
	})
}

// Retry on failure: "how important it is for clients that fail to acquire the majority of locks, to
// release the (partially) acquired locks ASAP, so that there is no need to wait for key expiry".
func TestSpecWhoFailsReleasesWhatHeHasAtOnce(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		w.warm(a, b)
		w.foreign("resource", 100*time.Millisecond, 0, 1, 2)
		w.delay(5 * time.Millisecond)
		_, err := a.TryAcquire(t.Context(), "resource")
		require.ErrorIs(t, err, redlock.ErrTaken)
		synctest.Wait()
		require.Equal(t, 3, w.lockedOn("resource"), "its own are gone as soon as the release has arrived")
		time.Sleep(100 * time.Millisecond)
		lease, err := b.TryAcquire(t.Context(), "resource")
		require.NoError(t, err)
		require.Equal(t, 5, w.lockedBy(lease))
		require.NoError(t, lease.Release(t.Context()))
	})
}

// Retry on failure: "if a network partition happens and the client is no longer able to communicate
// with the Redis instances, there is an availability penalty to pay as it waits for key expiration".
func TestSpecAPartitionCostsTheTTLAndNoMore(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		w.warm(a, b)
		lease := w.acquire(a, "resource")
		begin := time.Now()
		w.fleet.Host("a").Partition()
		require.ErrorIs(t, lease.Release(t.Context()), redlock.ErrNoQuorum)
		next := w.acquire(b, "resource")
		require.GreaterOrEqual(t, time.Since(begin), redlock.DefaultTTL)
		require.Less(t, time.Since(begin), redlock.DefaultTTL+20*time.Millisecond)
		require.NoError(t, next.Release(t.Context()))
		w.fleet.Host("a").Heal()
	})
}

// Releasing the lock: "involves just releasing the lock in all instances, whether or not the client
// believes it was able to successfully lock a given instance."
func TestSpecAReleaseGoesToAllInstances(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a := w.locker("a")
		w.warm(a)
		w.fleet.Hang(0) // was asked, and takes the lock only when it wakes
		lease := w.acquire(a, "resource")
		synctest.Wait()
		w.fleet.Hang(1) // has the lock, and does not hear of the release
		synctest.Wait()
		require.Equal(t, 4, w.lockedBy(lease))
		require.NoError(t, lease.Release(t.Context()))
		synctest.Wait()
		require.Equal(t, 1, w.lockedOn("resource"))
		time.Sleep(time.Second)
		w.fleet.Resume(0)
		w.fleet.Resume(1)
		time.Sleep(3 * time.Second)
		require.Zero(t, w.lockedOn("resource"))
	})
}

// Releasing the lock, whatever the work came to: see Liveness arguments, "when the lock was acquired
// and the work terminated".
func TestSpecTheLockIsReleasedHoweverTheWorkTerminates(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a := w.locker("a")
		failed := errors.New("failed")
		work := func(f func() error) error {
			return a.Do(t.Context(), "resource", func(context.Context, *redlock.Lease) error {
				require.NotZero(t, w.lockedOn("resource"))
				return f()
			})
		}
		require.NoError(t, work(func() error { return nil }))
		synctest.Wait()
		require.Zero(t, w.lockedOn("resource"))
		require.ErrorIs(t, work(func() error { return failed }), failed)
		synctest.Wait()
		require.Zero(t, w.lockedOn("resource"))
		require.Panics(t, func() { _ = work(func() error { panic("broken") }) })
		synctest.Wait()
		require.Zero(t, w.lockedOn("resource"))
	})
}
