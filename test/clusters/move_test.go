package clusters_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

// A ledger is what the holders of one name do one after the other. It sees two that do it at once, and
// tokens that do not grow.
type ledger struct {
	inside atomic.Int32
	last   atomic.Int64
	turns  atomic.Int64
}

func (l *ledger) enter(t *testing.T, lease *redlock.Lease) {
	assert.EqualValues(t, 1, l.inside.Add(1), "two hold the name at once")
	token := int64(lease.Token())
	assert.Less(t, l.last.Swap(token), token)
	l.turns.Add(1)
}

func (l *ledger) leave() { l.inside.Add(-1) }

func TestASlotMovesInEachClusterWhileItsLeasesAreHeldAndAskedFor(t *testing.T) {
	t.Parallel()
	f := start(t)
	names := f.names()[0]
	kept, contended := names[0], "{"+redlock.DefaultKeyPrefix+names[0]+"}"+"x"
	slot := f.slot(kept)
	require.Equal(t, slot, f.slot(contended), "in the slot that moves")
	holder := newLocker(t, f.clients())
	rivals := []*redlock.Locker{newLocker(t, f.clients()), newLocker(t, f.clients()), newLocker(t, f.clients())}
	awaitServing(t, holder, kept)

	lease := acquire(t, holder, kept, redlock.WithAutoExtend(true))
	require.NoError(t, lease.Save(t.Context(), []byte("kept")))
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	var book ledger
	for _, r := range rivals {
		awaitServing(t, r, kept)
		working.Go(func() { // asks for what is held
			_, err := r.Acquire(ctx, kept)
			assert.ErrorIs(t, err, context.Canceled)
		})
		working.Go(func() { // takes turns with the others
			for ctx.Err() == nil {
				next, err := r.Acquire(ctx, contended)
				if err != nil {
					assert.ErrorIs(t, err, context.Canceled)
					return
				}
				book.enter(t, next)
				if err := next.Extend(ctx); err != nil && !errors.Is(err, context.Canceled) {
					assert.ErrorIs(t, err, redlock.ErrNoQuorum)
				}
				book.leave()
				if err := next.Release(t.Context()); err != nil {
					assert.ErrorIs(t, err, redlock.ErrNoQuorum)
				}
			}
		})
	}
	turns := func(n int64) {
		t.Helper()
		from := book.turns.Load()
		require.Eventually(t, func() bool { return book.turns.Load() > from+n }, soon, poll)
	}
	for c := range f {
		turns(10)
		require.NoError(t, lease.Err())
		before, begun := book.turns.Load(), time.Now()
		f[c].MoveSlot(slot, f[c].Masters[0], f[c].Masters[1],
			func() { turns(10) }, func() { turns(10) })
		t.Logf("cluster %d: %d turns while its slot moved", c, book.turns.Load()-before)
		require.NoError(t, lease.Extend(t.Context()))
		require.Contains(t, f[c].Masters[1].Keys(), redlock.DefaultKeyPrefix+kept)
		require.NotContains(t, f[c].Masters[0].Keys(), redlock.DefaultKeyPrefix+kept)
		// The next one moves when the votes of this one count again.
		for _, l := range append(rivals, holder) {
			require.Eventually(t, func() bool {
				status, err := l.Inspect(t.Context(), kept)
				return err == nil && status.Nodes[c].Err == nil && status.Nodes[c].Quarantine == 0
			}, soon, 20*time.Millisecond)
		}
		require.GreaterOrEqual(t, time.Since(begun), ttl)
	}
	cancel()
	working.Wait()
	require.NoError(t, lease.Err())
	require.Equal(t, "kept", string(lease.State()))
	require.NoError(t, lease.Release(t.Context()))
	next := acquire(t, rivals[0], kept)
	require.Greater(t, next.Token(), lease.Token())
	require.Equal(t, "kept", string(next.State()), "nothing is lost")
	require.NoError(t, next.Release(t.Context()))
}
