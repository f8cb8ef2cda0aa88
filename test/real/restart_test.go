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
			const ttl = 3 * time.Second
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
			require.NoError(t, lease.Err(), "the restart must come while the lease is held")
			rivals.Go(func() { rival("the new client", newLocker(t, fleet.Clients(), opts...)) })
			rivals.Wait()
		})
	}
}

func TestALeaseSurvivesTheEmptyRestartOfEveryNodeOneAfterTheOther(t *testing.T) {
	t.Parallel()
	const maxTTL = 3 * time.Second
	fleet := redisserver.StartFleet(t, 5)
	eyes := fleet.Clients()
	opts := []redlock.Option{redlock.WithMaxTTL(maxTTL), redlock.WithTTL(maxTTL), redlock.WithNodeTimeout(time.Second)}
	holder, rival := newLocker(t, fleet.Clients(), opts...), newLocker(t, fleet.Clients(), opts...)
	awaitServing(t, holder, rival)

	lease := acquire(t, holder, "job", redlock.WithAutoExtend(true))
	require.NoError(t, lease.Save(t.Context(), []byte("state")))
	waiting, giveUp := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := rival.Acquire(waiting, "job")
		gone <- err
	}()

	everywhere := func() bool { return count(owners(t, eyes, lockKey("job")), lease.Owner()) == len(fleet) }
	for i, server := range fleet {
		require.Eventually(t, everywhere, soon, poll, "before node %d restarts", i)
		before := server.RunID()
		server.RestartEmpty()
		require.NotEqual(t, before, server.RunID())
		awaitServing(t, holder, rival)
		require.NoErrorf(t, lease.Err(), "after the restart of node %d", i)
	}
	require.Eventually(t, everywhere, soon, poll)
	require.NoError(t, lease.Err())

	giveUp()
	require.ErrorIs(t, <-gone, context.Canceled, "the rival has waited all the while")
	release(t, lease)
	next := acquire(t, rival, "job")
	require.Greater(t, next.Token(), lease.Token())
	require.Equal(t, "state", string(next.State()))
	release(t, next)
}
