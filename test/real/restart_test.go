package real_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/test/redisserver"
)

// restartEmpty kills the servers and starts them without their memory, all at once.
func restartEmpty(servers ...*redisserver.Server) {
	var all sync.WaitGroup
	for _, s := range servers {
		all.Go(s.RestartEmpty)
	}
	all.Wait()
}

func TestNobodyAcquiresWhatIsHeldWhenTwoOfThreeNodesRestartEmpty(t *testing.T) {
	t.Parallel()
	for _, extended := range []bool{false, true} {
		t.Run(fmt.Sprintf("extended %v", extended), func(t *testing.T) {
			t.Parallel()
			for ttl := 3 * time.Second; !nobodyAcquires(t, ttl, extended); ttl *= 2 {
				require.Less(t, ttl, 24*time.Second, "the nodes take longer to restart than the lease lasts, however long that is")
			}
		})
	}
}

// nobodyAcquires tells whether the nodes restarted in time: while the lease was held.
func nobodyAcquires(t *testing.T, ttl time.Duration, extended bool) (inTime bool) {
	t.Helper()
	fleet := redisserver.StartFleet(t, 3)
	opts := []redlock.Option{redlock.WithMaxTTL(ttl), redlock.WithTTL(ttl), redlock.WithNodeTimeout(time.Second)}
	holder, old := newLocker(t, fleet.Clients(), opts...), newLocker(t, fleet.Clients(), opts...)
	awaitServing(t, holder, old)

	start := time.Now()
	lease := acquire(t, holder, "job", redlock.WithAutoExtend(extended))
	var rivals sync.WaitGroup
	rival := func(who string, locker *redlock.Locker) {
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		defer cancel()
		next, err := locker.Acquire(ctx, "job")
		alive := lease.Context().Err() == nil
		since := time.Since(start)
		if err != nil {
			t.Errorf("%s: %v", who, err)
			return
		}
		t.Logf("%s has the name after %v", who, since)
		assert.Falsef(t, alive, "%s has the name after %v, and the holder's context is alive with %v left", who, since, lease.Remaining())
		assert.GreaterOrEqualf(t, since, ttl, "%s", who)
		assert.Greater(t, next.Token(), lease.Token(), who)
		release(t, next)
	}
	rivals.Go(func() { rival("the old client", old) })
	restartEmpty(fleet[0], fleet[1])
	if err := lease.Err(); err != nil {
		assert.ErrorIs(t, err, redlock.ErrLeaseExpired)
	} else {
		inTime = true
	}
	fresh := newLocker(t, fleet.Clients(), opts...)
	rivals.Go(func() { rival("the new client", fresh) })
	rivals.Wait()
	return inTime
}

func TestALeaseSurvivesTheEmptyRestartOfEveryNodeOneAfterTheOther(t *testing.T) {
	t.Parallel()
	inTime(t, func(ttl time.Duration) *redlock.Lease { return survives(t, ttl) })
}

// survives has a lease outlive the restart of every node. Where it has run out, nothing more is tested.
func survives(t *testing.T, maxTTL time.Duration) *redlock.Lease {
	t.Helper()
	fleet := redisserver.StartFleet(t, 5)
	eyes := fleet.Clients()
	opts := []redlock.Option{redlock.WithMaxTTL(maxTTL), redlock.WithTTL(maxTTL), redlock.WithNodeTimeout(time.Second)}
	holder, rival := newLocker(t, fleet.Clients(), opts...), newLocker(t, fleet.Clients(), opts...)
	awaitServing(t, holder, rival)

	lease := acquire(t, holder, "job", redlock.WithAutoExtend(true))
	if err := lease.Save(t.Context(), []byte("state")); lease.Err() == nil {
		require.NoError(t, err)
	}
	waiting, giveUp := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := rival.Acquire(waiting, "job")
		if held := lease.Err() == nil; err == nil && held {
			t.Error("two hold the name")
		}
		gone <- err
	}()

	everywhere := func() bool {
		return lease.Err() != nil || count(owners(t, eyes, lockKey("job")), lease.Owner()) == len(fleet)
	}
	for i, server := range fleet {
		require.Eventually(t, everywhere, soon, poll, "before node %d restarts", i)
		if lease.Err() != nil {
			break
		}
		before := server.RunID()
		server.RestartEmpty()
		require.NotEqual(t, before, server.RunID())
		awaitServing(t, holder, rival)
	}
	require.Eventually(t, everywhere, soon, poll)
	held := lease.Err() == nil // so it was all the while
	giveUp()
	err := <-gone
	if !held || lease.Err() != nil {
		return lease
	}
	require.ErrorIs(t, err, context.Canceled, "the rival has waited all the while")
	release(t, lease)
	next := acquire(t, rival, "job")
	require.Greater(t, next.Token(), lease.Token())
	require.Equal(t, "state", string(next.State()))
	release(t, next)
	return nil
}
