package clusters_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

func TestNamesOfAllShardsAreLeasedWaitedForAndHandedOn(t *testing.T) {
	t.Parallel()
	f := start(t)
	a, b := newLocker(t, f.clients()), newLocker(t, f.clients())
	names := f.names()
	all := append(append(names[0], names[1]...), append(names[2], "a{b}c", "brace{", "with spaces")...)
	awaitServing(t, a, all...)
	awaitServing(t, b, all...)
	for _, name := range all {
		lease := acquire(t, a, name)
		require.NoError(t, lease.Save(t.Context(), []byte("kept")))
		_, err := b.TryAcquire(t.Context(), name)
		require.ErrorIs(t, err, redlock.ErrTaken)
		shard := f.shard(name)
		for c := range f {
			require.Eventually(t, func() bool {
				return len(f[c].Masters[shard].Keys()) > 0
			}, soon, poll, "%s in cluster %d", name, c)
			for i, m := range f[c].Masters {
				if i != shard {
					require.NotContains(t, m.Keys(), redlock.DefaultKeyPrefix+name)
				}
			}
		}
		require.NoError(t, lease.Release(t.Context()))
		next := acquire(t, b, name)
		require.Greater(t, next.Token(), lease.Token())
		require.Equal(t, "kept", string(next.State()))
		require.NoError(t, next.Release(t.Context()))
	}
	for _, c := range f {
		for _, m := range c.Masters {
			info, err := m.Client().ClusterInfo(t.Context()).Result()
			require.NoError(t, err)
			require.NotContains(t, info, "messages_publish", "nobody waited, so no other server was told")
		}
	}
}

// It is told on whichever server of a cluster that a lease is over, and heard on whichever the others
// listen. Who waits must not depend on asking again.
func TestWhoWaitsIsWokenByAReleaseOnAnotherShardsServer(t *testing.T) {
	t.Parallel()
	f := start(t)
	a, b := newLocker(t, f.clients()), newLocker(t, f.clients())
	names := f.names()
	var all []string
	for _, of := range names {
		all = append(all, of[0])
	}
	awaitServing(t, a, all...)
	awaitServing(t, b, all...)
	for _, name := range all {
		woken := 0
		for range 12 {
			lease := acquire(t, a, name, redlock.WithAutoExtend(true))
			waiting := make(chan time.Time, 1)
			go func() {
				next, err := b.Acquire(t.Context(), name)
				at := time.Now()
				if err != nil {
					t.Error(err)
				} else {
					assert.NoError(t, next.Release(t.Context()))
				}
				waiting <- at
			}()
			// Long enough that it no longer asks again and again.
			require.Eventually(t, func() bool { return f.subscribers(t, name) > 0 }, soon, poll)
			timer := time.NewTimer(1500 * time.Millisecond)
			<-timer.C
			released := time.Now()
			require.NoError(t, lease.Release(t.Context()))
			if (<-waiting).Sub(released) < 50*time.Millisecond {
				woken++
			}
			if woken == 2 {
				break
			}
		}
		require.Equal(t, 2, woken, name)
	}
}

// subscribers are those of a name at the server that its release is published on, which counts them.
func (f fleet) subscribers(t *testing.T, name string) int64 {
	t.Helper()
	key := redlock.DefaultKeyPrefix + name
	counts, err := f[0].Masters[f.shard(name)].Client().PubSubNumSub(t.Context(), key).Result()
	require.NoError(t, err)
	return counts[key]
}

func TestAShardThatIsKilledAndRestartsEmptyConcernsItsOwnNamesOnly(t *testing.T) {
	t.Parallel()
	f := start(t)
	a, b := newLocker(t, f.clients()), newLocker(t, f.clients())
	names := f.names()
	for _, of := range names {
		awaitServing(t, a, of...)
		awaitServing(t, b, of...)
	}
	var held []*redlock.Lease
	for _, of := range names {
		held = append(held, acquire(t, a, of[0], redlock.WithAutoExtend(true)))
	}
	f[0].Masters[1].Kill()
	for i, of := range names {
		lease := acquire(t, b, of[1])
		require.NoError(t, lease.Extend(t.Context()))
		require.NoError(t, lease.Release(t.Context()))
		_, err := b.TryAcquire(t.Context(), of[0])
		require.ErrorIs(t, err, redlock.ErrTaken)
		require.NoError(t, held[i].Extend(t.Context()))
	}
	require.Error(t, inspect(t, b, names[1][1]).Err)
	require.NoError(t, inspect(t, b, names[0][1]).Err, "another shard of the same cluster")
	reports, err := b.Check(t.Context())
	require.Error(t, err)
	require.NotErrorIs(t, err, redlock.ErrNoQuorum)
	require.Len(t, reports[0].Shards, 3)
	require.False(t, reports[0].Up)

	restarted := time.Now()
	f[0].Masters[1].RestartEmpty()
	var status redlock.NodeStatus
	require.Eventually(t, func() bool {
		status = inspect(t, b, names[1][1])
		return status.Err == nil
	}, soon, poll)
	if time.Since(restarted) < ttl-time.Second {
		require.Positive(t, status.Quarantine)
		require.Zero(t, inspect(t, b, names[0][1]).Quarantine, "another shard of the same cluster")
		require.Zero(t, inspect(t, b, names[2][1]).Quarantine, "another shard of the same cluster")
	}
	awaitServing(t, b, names[1][1])
	require.GreaterOrEqual(t, time.Since(restarted), ttl)
	for i, of := range names {
		require.NoError(t, held[i].Err())
		require.Eventually(t, func() bool {
			return inspect(t, a, of[0]).Holder == held[i].Owner()
		}, soon, poll, "its lock is put back")
		require.NoError(t, held[i].Release(t.Context()))
	}
	_, err = b.Check(t.Context())
	require.NoError(t, err)
}

func TestNobodyAcquiresWhatIsHeldWhenItsShardForgetsInTwoOfThreeClusters(t *testing.T) {
	t.Parallel()
	// Whether the slot stays where it is, or is moved at once to a server that has been up for long.
	for _, move := range []bool{false, true} {
		t.Run(fmt.Sprintf("moved %v", move), func(t *testing.T) {
			t.Parallel()
			for range 5 {
				if forgetsWhileHeld(t, move) {
					return
				}
			}
			t.Error("no restart came while the lease was held")
		})
	}
}

// forgetsWhileHeld tells whether the restart has come while the lease was held. On a loaded machine it may
// take its time.
func forgetsWhileHeld(t *testing.T, move bool) bool {
	f := start(t)
	clients := f.clients()
	holder, old := newLocker(t, f.clients()), newLocker(t, clients)
	name := f.names()[1][0]
	awaitServing(t, holder, name)
	awaitServing(t, old, name)

	begin := time.Now()
	lease := acquire(t, holder, name)
	var rivals sync.WaitGroup
	rival := func(who string, locker *redlock.Locker) {
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		defer cancel()
		next, err := locker.Acquire(ctx, name)
		alive, since := lease.Context().Err() == nil, time.Since(begin)
		if err != nil {
			t.Errorf("%s: %v", who, err)
			return
		}
		t.Logf("%s has the name after %v", who, since)
		assert.Falsef(t, alive, "%s has the name after %v, and the holder's context is alive with %v left", who, since, lease.Remaining())
		assert.Greater(t, next.Token(), lease.Token(), who)
		assert.NoError(t, next.Release(t.Context()))
	}
	rivals.Go(func() { rival("the old client", old) })
	f.restartEmpty(1, 0, 1)
	if move {
		for c := range 2 {
			f[c].MoveSlot(f.slot(name), f[c].Masters[1], f[c].Masters[2])
		}
	}
	held := lease.Err() == nil
	rivals.Go(func() { rival("the new client", newLocker(t, f.clients())) })
	rivals.Wait()
	return held
}
