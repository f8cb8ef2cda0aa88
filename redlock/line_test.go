package redlock_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

// contend has the process of a Locker hold the name again and again, for a millisecond each.
func contend(ctx context.Context, l *redlock.Locker, name string, had func()) {
	for {
		lease, err := l.Acquire(ctx, name)
		if err != nil {
			return
		}
		had()
		time.Sleep(time.Millisecond)
		_ = lease.Release(context.WithoutCancel(ctx))
	}
}

func TestProcessesThatWaitTakeTurns(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		w.delay(200 * time.Microsecond)
		ctx, cancel := context.WithCancel(t.Context())
		order := make(chan string, 10_000)
		ended := make(chan struct{}, 4)
		for _, host := range []string{"a", "b", "c", "d"} {
			l := w.locker(host)
			go func() {
				contend(ctx, l, "hot", func() { order <- host })
				ended <- struct{}{}
			}()
			synctest.Wait()
		}
		time.Sleep(100 * time.Millisecond) // until all know of each other
		for len(order) > 0 {
			<-order
		}
		asked := w.fleet.Commands(0)
		time.Sleep(time.Second)
		asked = w.fleet.Commands(0) - asked
		had := map[string]int{}
		turns := len(order)
		for range turns {
			had[<-order]++
		}
		cancel()
		for range 4 {
			<-ended
		}
		require.Greater(t, turns, 100)
		for _, host := range []string{"a", "b", "c", "d"} {
			assert.InDelta(t, turns/4, had[host], float64(turns)/10, "%s had %v of %d", host, had, turns)
		}
		assert.Less(t, asked, 5*turns, "commands on a node, for %d turns", turns)
	})
}

func TestAProcessThatNeverHadToWaitGivesWayToThoseThatDo(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		for range 20 { // fewer than releases that keep the lock for nobody are apart
			lease, err := a.Acquire(t.Context(), "hot")
			require.NoError(t, err)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				lease, err := b.Acquire(t.Context(), "hot")
				assert.NoError(t, err)
				time.Sleep(time.Millisecond)
				assert.NoError(t, lease.Release(t.Context()))
			}()
			synctest.Wait()
			require.NoError(t, lease.Release(t.Context()))
			if lease, err = a.TryAcquire(t.Context(), "hot"); err == nil { // it was faster, and knows of b now
				synctest.Wait()
				require.NoError(t, lease.Release(t.Context()))
				_, err = a.TryAcquire(t.Context(), "hot")
			}
			require.ErrorIs(t, err, redlock.ErrTaken)
			<-ended
			time.Sleep(2 * time.Second) // and forgets it
		}
	})
}

func TestAProcessIsCalledThoughItsReleaseWasAnsweredLongAfterItsLastUseOfTheName(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		patient := []redlock.Option{redlock.WithTTL(20 * time.Second), redlock.WithMaxTTL(20 * time.Second), redlock.WithNodeTimeout(4 * time.Second)}
		a, b := w.locker("a", patient...), w.locker("b", patient...)
		lease := w.acquire(b, "hot")
		q := w.lineUp(a, 1, "hot")
		require.NoError(t, lease.Release(t.Context()))
		lease = q.next(0)
		q = w.lineUp(b, 1, "hot")
		for i := range 3 {
			w.fleet.Hang(i)
		}
		released := make(chan error)
		go func() { released <- lease.Release(t.Context()) }()
		time.Sleep(1500 * time.Millisecond)
		for i := range 3 {
			w.fleet.Resume(i)
		}
		require.NoError(t, <-released)
		lease = q.next(0)
		for range 5 {
			q = w.lineUp(a, 1, "hot")
			time.Sleep(500 * time.Millisecond) // the pauses of one who waits get longer
			require.NoError(t, lease.Release(t.Context()))
			began := time.Now()
			lease = q.next(0)
			require.Less(t, time.Since(began), 5*time.Millisecond)
			q = w.lineUp(b, 1, "hot")
			require.NoError(t, lease.Release(t.Context()))
			lease = q.next(0)
		}
		require.NoError(t, lease.Release(t.Context()))
	})
}

func TestTheNextInLineWhoHasGoneHoldsNobodyUpForLong(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a, b, c := w.locker("a"), w.locker("b"), w.locker("c")
		w.meetAt("hot", a, b)
		lease := w.acquire(a, "hot")
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() { _, err := b.Acquire(ctx, "hot"); gone <- err }()
		synctest.Wait()
		q := w.lineUp(c, 1, "hot")
		w.fleet.Host("b").Partition()
		cancel() // and cannot tell the nodes
		require.ErrorIs(t, <-gone, context.Canceled)
		begin := time.Now()
		require.NoError(t, lease.Release(t.Context()))
		next := q.next(0)
		require.Less(t, time.Since(begin), 100*time.Millisecond)
		require.NoError(t, next.Release(t.Context()))
	})
}

func TestWhoGivesUpLeavesTheLine(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		lease := w.acquire(a, "hot")
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() { _, err := b.Acquire(ctx, "hot"); gone <- err }()
		synctest.Wait()
		line := "{" + redlock.DefaultKeyPrefix + "hot}:line"
		_, waits := w.fleet.Get(0, line)
		require.True(t, waits)
		cancel()
		require.ErrorIs(t, <-gone, context.Canceled)
		synctest.Wait()
		for i := range 3 {
			_, waits := w.fleet.Get(i, line)
			require.False(t, waits)
		}
		require.NoError(t, lease.Release(t.Context()))
	})
}

// Whoever was served least lately is first, also before one whose clock is behind.
func TestTheLineIsTheSameWhateverTheClocksSay(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a, b, c := w.locker("a"), w.locker("b"), w.locker("c")
		w.clock("c").Skew(-time.Minute)
		w.meetAt("hot", a, b)
		w.meetAt("hot", a, c)
		lease := w.acquire(a, "hot")
		second, first := w.lineUp(c, 1, "hot"), w.lineUp(b, 1, "hot")
		require.NoError(t, lease.Release(t.Context()))
		require.NoError(t, first.next(0).Release(t.Context()))
		require.NoError(t, second.next(0).Release(t.Context()))
	})
}

// meetAt has two processes want a name at the same time, so that each knows that the other does.
func (w *world) meetAt(name string, a, b *redlock.Locker) {
	w.t.Helper()
	for _, l := range []*redlock.Locker{a, b, a} {
		lease := w.acquire(l, name)
		other := a
		if l == a {
			other = b
		}
		q := w.lineUp(other, 1, name)
		require.NoError(w.t, lease.Release(w.t.Context()))
		require.NoError(w.t, q.next(0).Release(w.t.Context()))
		synctest.Wait()
	}
}

func TestANameThatIsKeptForTheNextInLineHasNoHolder(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		for i := range 3 {
			key := redlock.DefaultKeyPrefix + "hot"
			require.NoError(t, w.fleet.Clients()[i].Set(t.Context(), key, "next in line/ABCDEFGHIJKLMNOP", 20*time.Millisecond).Err())
		}
		a := w.locker("a")
		status, err := a.Inspect(t.Context(), "hot")
		require.NoError(t, err)
		require.Empty(t, status.Holder)
		_, err = a.TryAcquire(t.Context(), "hot")
		require.ErrorIs(t, err, redlock.ErrTaken)
		require.ErrorContains(t, err, "next in line")
		time.Sleep(21 * time.Millisecond)
		require.NoError(t, w.acquire(a, "hot").Release(t.Context()))
	})
}

// Other Redlock clients are in no line: now and then a name is released for whoever is first.
func TestWhoIsInNoLineIsNotKeptOutForEver(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		w.delay(200 * time.Microsecond)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{}, 2)
		var turns atomic.Int32
		for _, host := range []string{"a", "b"} {
			l := w.locker(host)
			go func() {
				contend(ctx, l, "hot", func() { turns.Add(1) })
				ended <- struct{}{}
			}()
		}
		time.Sleep(100 * time.Millisecond)
		foreign := func() bool {
			n := 0
			for _, c := range w.fleet.Clients() {
				if ok, err := c.SetNX(t.Context(), redlock.DefaultKeyPrefix+"hot", "a foreigner", 5*time.Millisecond).Result(); err == nil && ok {
					n++
				}
			}
			return n >= 2
		}
		begin := turns.Load()
		for !foreign() {
			require.Less(t, turns.Load()-begin, int32(4000))
			time.Sleep(300 * time.Microsecond)
		}
		cancel()
		<-ended
		<-ended
	})
}

func TestALineIsForgottenWithItsProcesses(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		w.meetAt("hot", a, b)
		time.Sleep(redlock.DefaultTTL + time.Second)
		for _, key := range w.fleet.Keys(0) {
			require.False(t, strings.HasSuffix(key, ":line"), key)
		}
	})
}

// A node that restarted knows of no line, and tells everybody; another's message is lost. Together they
// are a quorum.
func TestTheNextInLineWakesWhereNodesDoNotAgreeOnTheLine(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		w.meetAt("hot", a, b)
		lease := w.acquire(a, "hot")
		for synctest.Wait(); w.lockedBy(lease) < 3; synctest.Wait() { // one may be kept for b, for a moment
			time.Sleep(50 * time.Millisecond)
			require.NoError(t, lease.Extend(t.Context()))
		}
		q := w.lineUp(b, 1, "hot")
		time.Sleep(time.Second) // its backoff has grown
		synctest.Wait()
		require.NoError(t, w.fleet.Clients()[0].Del(t.Context(), "{"+redlock.DefaultKeyPrefix+"hot}:line").Err())
		w.fleet.Host("b").Partition(2)
		begin := time.Now()
		require.NoError(t, lease.Release(t.Context()))
		next := q.next(0)
		require.Less(t, time.Since(begin), 10*time.Millisecond)
		require.NoError(t, next.Release(t.Context()))
	})
}
