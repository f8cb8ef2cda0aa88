package real_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/scheduler"
	"github.com/quorate/quorate/test/redisserver"
)

// What went wrong in other libraries, or was asked of them, and has no test elsewhere yet:
// docs/track-record.md has the whole list.

// redsync's WithSetNXOnExtend sets the key again where it is missing, whoever held it meanwhile.
func TestAnExtensionIsRefusedAfterAnotherHolderHasComeAndGone(t *testing.T) {
	t.Parallel()
	fleet := redisserver.StartFleet(t, 3)
	eyes := fleet.Clients()
	holder, rival := newLocker(t, fleet.Clients(), atEase()...), newLocker(t, fleet.Clients(), atEase()...)
	lease := acquire(t, holder, "job")
	for _, eye := range eyes { // the straggler's acceptance must not come after
		require.Eventually(t, func() bool { return eye.Exists(t.Context(), lockKey("job")).Val() == 1 }, soon, poll)
		require.NoError(t, eye.Del(t.Context(), lockKey("job")).Err())
	}
	next := acquire(t, rival, "job")
	require.Greater(t, next.Token(), lease.Token())
	release(t, next)
	for _, eye := range eyes {
		require.Eventually(t, func() bool { return eye.Exists(t.Context(), lockKey("job")).Val() == 0 }, soon, poll)
	}

	require.ErrorIs(t, lease.Extend(t.Context()), redlock.ErrLeaseLost)
	require.ErrorIs(t, context.Cause(lease.Context()), redlock.ErrLeaseLost)
	require.Equal(t, len(fleet), count(owners(t, eyes, lockKey("job")), ""), "nothing was set again")
}

// redsync #186: A has nodes 0, 1 and 2, node 2 forgets, and B acquires 2, 3 and 4.
func TestABareQuorumSurvivesTheEmptyRestartOfOneOfItsNodes(t *testing.T) {
	t.Parallel()
	inTime(t, func(ttl time.Duration) *redlock.Lease { return bareQuorum(t, ttl) })
}

func bareQuorum(t *testing.T, maxTTL time.Duration) (ranOut *redlock.Lease) {
	t.Helper()
	fleet := redisserver.StartFleet(t, 5)
	links, eyes := fleet.Links(), fleet.Clients()
	opts := []redlock.Option{redlock.WithMaxTTL(maxTTL), redlock.WithTTL(maxTTL), redlock.WithNodeTimeout(time.Second)}
	holder, rival := newLocker(t, links.Clients(), opts...), newLocker(t, fleet.Clients(), opts...)
	awaitServing(t, holder, rival)
	links[3].Cut()
	links[4].Cut()
	lease := acquire(t, holder, "job", redlock.WithAutoExtend(true))
	if free := count(owners(t, eyes, lockKey("job")), ""); lease.Err() == nil {
		require.Equal(t, 2, free, "a bare quorum")
	}
	links[3].Reset() // what waited there is lost
	links[4].Reset()
	links[3].Heal()
	links[4].Heal()
	fleet[2].RestartEmpty()

	ctx, giveUp := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := rival.Acquire(ctx, "job")
		if held := lease.Err() == nil; err == nil && held {
			t.Error("two hold the name")
		}
		gone <- err
	}()
	awaitServing(t, holder, rival) // node 2 counts again
	require.Eventually(t, func() bool {
		return lease.Err() != nil || count(owners(t, eyes, lockKey("job")), lease.Owner()) == len(fleet)
	}, soon, poll, "an extension puts the lease on every node")
	held := lease.Err() == nil // so it was all the while
	giveUp()
	err := <-gone
	if !held || lease.Err() != nil {
		return lease
	}
	require.ErrorIs(t, err, context.Canceled, "the rival has waited all the while")
	release(t, lease)
	return nil
}

// rueidislock sends an absolute time, so with a clock that is behind two clients hold at once.
func TestWallClocksThatAreOffMakeNoTwoHolders(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
		t.Run(off.String(), func(t *testing.T) {
			t.Parallel()
			fleet := redisserver.StartFleet(t, 3)
			opts := atEase(redlock.WithTTL(4*time.Second), redlock.WithNodeTimeout(2*time.Second))
			holder, rival := newHost(t, fleet, off, opts...), newHost(t, fleet, 0, opts...)
			for range 2 {
				lease := acquire(t, holder, "job")
				next := acquire(t, rival, "job") // waits until it has run out
				require.ErrorIs(t, lease.Err(), redlock.ErrLeaseExpired)
				require.Greater(t, next.Token(), lease.Token())
				holder, rival = rival, holder
				release(t, next)
			}
		})
	}
}

// node-redlock's AbortSignal does not fire while Redis hangs (#86), and when it does, it waits for
// a release (#309).
func TestAnAcquireIsCancelledAtOnceThoughEveryNodeHangs(t *testing.T) {
	t.Parallel()
	fleet := redisserver.StartFleet(t, 3)
	// With these the Locker itself would wait for much longer.
	locker := newLocker(t, fleet.Clients(), redlock.WithTrustPersistence(),
		redlock.WithTTL(time.Minute), redlock.WithMaxTTL(time.Minute), redlock.WithNodeTimeout(30*time.Second))
	release(t, acquire(t, locker, "warm"))
	for _, s := range fleet {
		s.Pause()
	}
	defer func() {
		for _, s := range fleet {
			s.Resume()
		}
	}()

	ctx, cancel := context.WithCancel(t.Context())
	begun := time.Now()
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err := locker.Acquire(ctx, "job")
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, time.Since(begun), 10*time.Second, "a third of the node timeout, for a slow machine")
}

// Redisson asks the server for the token, which is the new holder's by then.
func TestAStaleHoldersTokenIsItsOwn(t *testing.T) {
	t.Parallel()
	fleet := redisserver.StartFleet(t, 3)
	one, two := newLocker(t, fleet.Clients(), atEase()...), newLocker(t, fleet.Clients(), atEase()...)
	lease, err := one.Acquire(t.Context(), "job", redlock.WithTTL(500*time.Millisecond), redlock.WithMinValidity(time.Millisecond))
	require.NoError(t, err)
	first := lease.Token()
	next := acquire(t, two, "job")
	require.Equal(t, first, lease.Token())
	require.Greater(t, next.Token(), first)
	require.ErrorIs(t, lease.Err(), redlock.ErrLeaseExpired)
	release(t, next)
}

// Redisson's watchdog can outlive the unlock, and then refreshes for ever (#7272).
func TestNothingExtendsALeaseAfterItsRelease(t *testing.T) {
	t.Parallel()
	const ttl = 300 * time.Millisecond
	fleet := redisserver.StartFleet(t, 3)
	eyes := fleet.Clients()
	locker := newLocker(t, fleet.Clients(), redlock.WithTrustPersistence(), redlock.WithTTL(ttl), redlock.WithAutoExtend(true))
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			lease, err := locker.Acquire(t.Context(), fmt.Sprintf("job-%d", i))
			if err != nil {
				t.Error(err)
				return
			}
			// About the time of its extensions.
			wait := time.NewTimer(ttl/3*time.Duration(1+i%2) + time.Duration(rand.Int64N(int64(4*time.Millisecond))) - 2*time.Millisecond)
			defer wait.Stop()
			<-wait.C
			if err := lease.Release(t.Context()); err != nil {
				assert.NotErrorIs(t, err, context.Canceled)
			}
		})
	}
	all.Wait()
	require.Eventually(t, func() bool { return len(stray(t, eyes, "job-")) == 0 }, soon, poll)
	for watch := time.Now(); time.Since(watch) < 2*ttl; pass(t, poll) {
		require.Empty(t, stray(t, eyes, "job-"), "a key came back")
	}
}

// redlock-py raises when a node has an error, though a quorum has accepted, and keeps the lock.
func TestAnErrorOfOneNodeCostsNothing(t *testing.T) {
	t.Parallel()
	fleet := redisserver.StartFleet(t, 2)
	refusing := redisserver.Start(t, redisserver.WithACL("user default on nopass ~* &* +@all -evalsha -eval"))
	locker := newLocker(t, append(fleet.Clients(), refusing.Client()), atEase()...)
	for range 3 {
		lease := acquire(t, locker, "job")
		require.NoError(t, lease.Extend(t.Context()))
		require.NoError(t, lease.Release(t.Context()))
	}
	for i, eye := range fleet.Clients() {
		require.Eventually(t, func() bool { return eye.Exists(t.Context(), lockKey("job")).Val() == 0 }, soon, poll, "node %d", i)
	}
}

// redlock-rb #76: the SET is applied, the reply is lost, and the resource is stuck for the TTL.
func TestAnAcquireWhoseAnswersWereLostLeavesNothingWhenTheNodesCanBeReached(t *testing.T) {
	t.Parallel()
	fleet := redisserver.StartFleet(t, 3)
	links := fleet.Links()
	opts := atEase()
	unlucky, other := newLocker(t, links.Clients(), opts...), newLocker(t, fleet.Clients(), opts...)
	release(t, acquire(t, unlucky, "warm"))
	for _, l := range links {
		l.CutAnswers()
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := unlucky.Acquire(ctx, "job")
		gone <- err
	}()
	eyes := fleet.Clients()
	require.Eventually(t, func() bool { return count(owners(t, eyes, lockKey("job")), "") <= 1 }, soon, poll, "a quorum has the lock")
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	for _, l := range links {
		l.Heal()
	}
	// Far within the TTL, which would have freed it as well.
	freed, cancel := context.WithTimeout(t.Context(), longest/2)
	defer cancel()
	lease, err := other.Acquire(freed, "job")
	require.NoError(t, err)
	release(t, lease)
}

// Two electors on Redis: with the key deleted, both replicas still say "leader" seconds later on a
// one-second lease.
func TestTwoDoNotSayForLongThatTheyLeadWhenTheKeysWereDeleted(t *testing.T) {
	t.Parallel()
	const ttl = 3 * time.Second
	fleet := redisserver.StartFleet(t, 3)
	eyes := fleet.Clients()
	lead := func(ctx context.Context, _ leader.Term) error { <-ctx.Done(); return nil }
	var electors []*leader.Elector
	var all sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer all.Wait()
	defer stop()
	for range 2 {
		elector, err := leader.New(newLocker(t, fleet.Clients(), redlock.WithTrustPersistence()), "billing", leader.WithTTL(ttl))
		require.NoError(t, err)
		electors = append(electors, elector)
		all.Go(func() { assert.NoError(t, elector.Run(ctx, lead)) })
	}
	leading := func() int {
		n := 0
		for _, e := range electors {
			if e.IsLeader() {
				n++
			}
		}
		return n
	}
	require.Eventually(t, func() bool { return leading() == 1 }, soon, poll)
	for _, eye := range eyes {
		require.NoError(t, eye.Del(t.Context(), lockKey("billing")).Err())
	}
	var both, since time.Duration
	for watch := time.Now(); time.Since(watch) < 2*ttl; pass(t, poll) {
		if leading() == 2 {
			if since == 0 {
				since = time.Since(watch)
			}
			both = time.Since(watch) - since
		}
	}
	require.Less(t, both, ttl, "the next extension, a third of the TTL away, tells the first that it has lost")
	require.Eventually(t, func() bool { return leading() == 1 }, soon, poll)
}

// river #658: only the job list of the leader counts, so what a new version adds does not run
// until an old replica has gone.
func TestAJobThatOnlyOneReplicaHasIsRunThere(t *testing.T) {
	t.Parallel()
	fleet := redisserver.StartFleet(t, 3)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	ran := make(chan string, 1000)
	for _, jobs := range [][]string{{"old"}, {"old", "new"}} {
		sched, err := scheduler.New(newLocker(t, fleet.Clients(), atEase()...))
		require.NoError(t, err)
		for _, job := range jobs {
			require.NoError(t, sched.Add(job, "@every 1s", func(context.Context, scheduler.Run) error {
				ran <- job
				return nil
			}))
		}
		all.Go(func() { assert.NoError(t, sched.Run(ctx)) })
	}
	seen := map[string]bool{}
	require.Eventually(t, func() bool {
		select {
		case job := <-ran:
			seen[job] = true
		default:
		}
		return len(seen) == 2
	}, soon, poll)
}
