package redlock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

// Safety arguments: "we are sure that the first key to expire in the set will exist for at least
// MIN_VALIDITY=TTL-(T2-T1)-CLOCK_DRIFT. All the other keys will expire later".
func TestSpecTheKeysOfAMajorityOutliveTheMinimalValidity(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a := w.locker("a")
		w.warm(a)
		// T1 is now; two keys are set at once, one 40 ms later, the others 80 ms later.
		w.fleet.Hang(2)
		w.fleet.Hang(3)
		w.fleet.Hang(4)
		time.AfterFunc(40*time.Millisecond, func() { w.fleet.Resume(2) })
		time.AfterFunc(80*time.Millisecond, func() { w.fleet.Resume(3); w.fleet.Resume(4) })
		t1 := time.Now()
		lease := w.acquire(a, "resource")
		require.Equal(t, 40*time.Millisecond, time.Since(t1), "T2 is the reply that made the majority")
		require.Equal(t, validity-40*time.Millisecond, lease.Remaining())
		for lease.Context().Err() == nil {
			require.GreaterOrEqual(t, w.lockedBy(lease), 3, "after %v", time.Since(t1))
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Until(t1.Add(redlock.DefaultTTL + 10*time.Millisecond)))
		require.Equal(t, 3, w.lockedBy(lease), "the keys set at T1 have gone, the others expire later")
	})
}

// Safety arguments: "During the time that the majority of keys are set, another client will not be
// able to acquire the lock, since N/2+1 SET NX operations can't succeed if N/2+1 keys already exist."
func TestSpecNobodyAcquiresWhileAMajorityOfKeysIsSet(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		w.fleet.Host("a").Partition(3, 4)
		lease := w.acquire(a, "resource") // on three nodes, the fewest there can be
		for w.lockedBy(lease) >= 3 {
			_, err := b.TryAcquire(t.Context(), "resource")
			require.ErrorIs(t, err, redlock.ErrTaken)
			time.Sleep(100 * time.Millisecond)
		}
		require.ErrorIs(t, lease.Err(), redlock.ErrLeaseExpired)
		require.NoError(t, w.acquire(b, "resource").Release(t.Context()))
		w.fleet.Host("a").Heal()
	})
}

// Safety arguments: "we want to also make sure that multiple clients trying to acquire the lock at
// the same time can't simultaneously succeed."
func TestSpecOfClientsThatAskAtTheSameTimeAtMostOneSucceeds(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		var lockers []*redlock.Locker
		for _, host := range []string{"a", "b", "c", "d", "e", "f"} {
			lockers = append(lockers, w.locker(host))
		}
		w.warm(lockers...)
		w.delay(2 * time.Millisecond)
		won := 0
		for range 20 {
			leases := make([]*redlock.Lease, len(lockers))
			var wg sync.WaitGroup
			for i, l := range lockers {
				wg.Go(func() { leases[i], _ = l.TryAcquire(t.Context(), "resource") })
			}
			wg.Wait()
			holders := 0
			for _, lease := range leases {
				if lease != nil {
					holders++
					require.NoError(t, lease.Release(t.Context()))
				}
			}
			require.LessOrEqual(t, holders, 1)
			won += holders
			time.Sleep(10 * time.Millisecond)
		}
		require.Positive(t, won)
	})
}

// Safety arguments: "If a client locked the majority of instances using a time near, or greater, than
// the lock maximum validity time […], it will consider the lock invalid and will unlock the instances".
func TestSpecALockThatTookNearlyTheWholeValidityIsInvalid(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		w.warm(a)
		w.delay(20 * time.Millisecond)
		near := validity - redlock.DefaultTTL/10 + time.Millisecond // less than a tenth of the TTL is left
		time.AfterFunc(10*time.Millisecond, func() { w.clock("a").Suspend(near) })
		_, err := a.TryAcquire(t.Context(), "resource")
		require.ErrorIs(t, err, redlock.ErrNoValidity)
		time.Sleep(20 * time.Millisecond)
		require.Zero(t, w.lockedOn("resource"))
	})
}

// Safety arguments: "multiple clients will be able to lock N/2+1 instances at the same time […] only
// when the time to lock the majority was greater than the TTL time, making the lock invalid."
func TestSpecWhoLockedTheMajorityOnlyAfterTheTTLHasNoLock(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		w.warm(a, b)
		w.delay(20 * time.Millisecond)
		// The first client's machine sleeps when the nodes have voted for it, and wakes when the
		// second has the lock.
		slow := make(chan error, 1)
		go func() {
			_, err := a.TryAcquire(t.Context(), "resource", redlock.WithTTL(15*time.Millisecond), redlock.WithMinValidity(time.Millisecond))
			slow <- err
		}()
		time.Sleep(16 * time.Millisecond)
		require.Zero(t, w.lockedOn("resource"), "the majority has voted, and the votes have expired")
		lease := w.acquire(b, "resource")
		require.ErrorIs(t, <-slow, redlock.ErrNoValidity)
		time.Sleep(time.Second)
		require.Equal(t, 3, w.lockedBy(lease), "what the first takes back is not the lock of the second")
		require.NoError(t, lease.Release(t.Context()))
	})
}

// Liveness arguments: "The auto release of the lock (since keys expire): eventually keys are
// available again to be locked."
func TestSpecLocksReleaseThemselves(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a := w.locker("a")
		w.acquire(a, "resource")
		synctest.Wait()
		require.NoError(t, a.Close()) // gives nothing back
		require.Equal(t, 5, w.lockedOn("resource"))
		time.Sleep(redlock.DefaultTTL)
		require.Zero(t, w.lockedOn("resource"))
	})
}

// Liveness arguments: "clients, usually, will cooperate removing the locks when the lock was not
// acquired, or when the lock was acquired and the work terminated, making it likely that we don't
// have to wait for keys to expire".
func TestSpecNobodyWaitsForKeysToExpireWhereClientsCooperate(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		lockers := []*redlock.Locker{w.locker("a"), w.locker("b"), w.locker("c")}
		w.warm(lockers...)
		w.delay(time.Millisecond)
		begin := time.Now()
		var wg sync.WaitGroup
		for _, l := range lockers {
			wg.Go(func() {
				for range 20 {
					err := l.Do(t.Context(), "resource", func(context.Context, *redlock.Lease) error { return nil })
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		require.Less(t, time.Since(begin), redlock.DefaultTTL, "60 turns in less than one expiry")
	})
}

// Liveness arguments: "when a client needs to retry a lock, it waits a time which is comparably
// greater than the time needed to acquire the majority of locks".
func TestSpecRetriesWaitLongerThanAnAcquisitionTakes(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a, seen := w.watched("a")
		w.warm(a)
		seen.at = nil
		w.foreign("resource", time.Hour, 0, 1, 2, 3, 4)
		const needed = 20 * time.Millisecond
		w.delay(needed)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := a.Acquire(ctx, "resource")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var waits []time.Duration
		for _, gap := range seen.gaps() {
			waits = append(waits, gap-needed)
		}
		require.Greater(t, len(waits), 10)
		for _, wait := range waits[8:] { // the waits grow, whatever the nodes' distance
			require.Greater(t, wait, needed)
		}
	})
}

// Liveness arguments: "we pay an availability penalty equal to TTL time on network partitions, so if
// there are continuous partitions, we can pay this penalty indefinitely."
func TestSpecEachPartitionCostsTheTTLOnce(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		b := w.locker("b")
		w.warm(b)
		for range 3 {
			a := w.locker("a")
			w.acquire(a, "resource")
			w.fleet.Host("a").Partition()
			begin := time.Now()
			lease := w.acquire(b, "resource")
			require.GreaterOrEqual(t, time.Since(begin), redlock.DefaultTTL)
			require.LessOrEqual(t, time.Since(begin), redlock.DefaultTTL+20*time.Millisecond)
			require.NoError(t, lease.Release(t.Context()))
			w.fleet.Host("a").Heal()
			require.NoError(t, a.Close())
			time.Sleep(5 * time.Second)
		}
	})
}
