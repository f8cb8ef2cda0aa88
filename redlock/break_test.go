package redlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

func TestABrokenLeaseIsLostAndTheNextHolderComesAtOnce(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a, b, operator := w.locker("a"), w.locker("b"), w.locker("operator")
		lease := w.acquire(a, "job", redlock.WithAutoExtend(true))
		acquired := make(chan *redlock.Lease, 1)
		go func() {
			next, err := b.Acquire(t.Context(), "job")
			assert.NoError(t, err)
			acquired <- next
		}()
		time.Sleep(time.Second)

		begin := time.Now()
		status, err := operator.Break(t.Context(), "job")
		require.NoError(t, err)
		require.Equal(t, lease.Owner(), status.Holder)
		require.GreaterOrEqual(t, status.Token, lease.Token())
		next := <-acquired
		require.Less(t, time.Since(begin), 100*time.Millisecond, "who waits is woken")
		require.Greater(t, next.Token(), lease.Token())

		<-lease.Context().Done()
		require.ErrorIs(t, context.Cause(lease.Context()), redlock.ErrLeaseLost)
		require.LessOrEqual(t, time.Since(begin), redlock.DefaultTTL/3+time.Second, "with its next extension")
		require.NoError(t, next.Extend(t.Context()))
		require.NoError(t, next.Release(t.Context()))
	})
}

// A holder whose lock is gone at a quorum would put it back with its next extension, if it may.
func TestABrokenLeaseIsNotHealedThoughNobodyElseWantsTheName(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a, operator := w.locker("a"), w.locker("operator")
		lease := w.acquire(a, "job")
		_, err := operator.Break(t.Context(), "job")
		require.NoError(t, err)
		require.ErrorIs(t, lease.Extend(t.Context()), redlock.ErrLeaseLost)
		synctest.Wait()
		require.Zero(t, w.lockedOn("job"))
	})
}

// A lease raises its number above a fence that it meets (see extend.go). Where the operator cannot look it
// may have been raised already, and with the higher number it could put its lock back everywhere.
func TestABrokenLeaseIsNotHealedFromNodesThatCouldNotBeAsked(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a, operator := w.locker("a"), w.locker("operator")
		lease := w.acquire(a, "job")
		_, err := operator.Inspect(t.Context(), "job")
		require.NoError(t, err)
		rival := w.fleet.Clients()[0]
		require.NoError(t, rival.Del(t.Context(), redlock.DefaultKeyPrefix+"job").Err())
		fence := "{" + redlock.DefaultKeyPrefix + "job}:fence"
		require.NoError(t, rival.Set(t.Context(), fence, int64(lease.Token()+5), time.Hour).Err())
		require.NoError(t, lease.Extend(t.Context()), "it has met the rival's fence")
		synctest.Wait()
		w.fleet.Host("a").Partition(2, 3, 4)
		require.ErrorIs(t, lease.Extend(t.Context()), redlock.ErrNoQuorum)
		raised, _ := w.fleet.Get(1, fence)
		require.Greater(t, raised, lease.Token().String(), "the number is raised, and a minority knows it")
		w.fleet.Host("a").Heal(2, 3, 4)
		time.Sleep(3 * time.Second) // a trusts them again

		w.fleet.Host("operator").Partition(0, 1)
		_, err = operator.Break(t.Context(), "job")
		require.NoError(t, err)
		require.ErrorIs(t, lease.Extend(t.Context()), redlock.ErrLeaseLost)
		w.fleet.Host("operator").Heal(0, 1)
		time.Sleep(redlock.DefaultTTL) // the nodes that were not told
		next := w.acquire(w.locker("b"), "job")
		require.Greater(t, next.Token(), lease.Token())
	})
}

func TestBreakingWhatNobodyHoldsChangesNothing(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		l := w.locker("a")
		status, err := l.Break(t.Context(), "never used")
		require.NoError(t, err)
		require.Empty(t, status.Holder)
		lease := w.acquire(l, "job")
		require.NoError(t, lease.Release(t.Context()))
		before, err := l.Inspect(t.Context(), "job")
		require.NoError(t, err)
		_, err = l.Break(t.Context(), "job")
		require.NoError(t, err)
		after, err := l.Inspect(t.Context(), "job")
		require.NoError(t, err)
		require.Equal(t, before.Token, after.Token)
		require.Empty(t, told(t, l.List(t.Context(), redlock.Filter{Held: true})))
	})
}

func TestALockOfAMinorityIsBrokenAsWell(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		crashed := w.fleet.Clients()[3].Set(t.Context(), redlock.DefaultKeyPrefix+"job", "somebody who crashed", time.Minute)
		require.NoError(t, crashed.Err())
		l := w.locker("a")
		status, err := l.Break(t.Context(), "job")
		require.NoError(t, err)
		require.Empty(t, status.Holder, "no quorum has it")
		synctest.Wait() // a quorum has confirmed
		require.Zero(t, w.lockedOn("job"))
	})
}

func TestNothingIsBrokenWithoutAQuorum(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a, operator := w.locker("a"), w.locker("operator")
		lease := w.acquire(a, "job")
		w.fleet.Host("operator").Partition(0, 1)
		_, err := operator.Break(t.Context(), "job")
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.NoError(t, lease.Extend(t.Context()))
	})
}
