package redlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

// A line is goroutines of one process that wait for a name, in this order.
type line struct {
	t      *testing.T
	leases []*redlock.Lease
	errs   []error
	came   chan int
}

// lineUp has n goroutines wait for the name, one behind the other.
func (w *world) lineUp(l *redlock.Locker, n int, name string, opts ...redlock.LeaseOption) *line {
	w.t.Helper()
	q := &line{t: w.t, leases: make([]*redlock.Lease, n), errs: make([]error, n), came: make(chan int, n)}
	for i := range n {
		go func() {
			q.leases[i], q.errs[i] = l.Acquire(w.t.Context(), name, opts...)
			q.came <- i
		}()
		synctest.Wait()
	}
	return q
}

// next is the lease of whoever has the turn now, who must be the i-th in line.
func (q *line) next(i int) *redlock.Lease {
	q.t.Helper()
	require.Equal(q.t, i, <-q.came)
	require.NoError(q.t, q.errs[i])
	return q.leases[i]
}

// reserved is a lease for the first of those who wait in this process, with a range of tokens behind
// it: the first lease is won while nobody waits yet.
func (w *world) reserved(l *redlock.Locker, behind int, name string, opts ...redlock.LeaseOption) (*redlock.Lease, *line) {
	w.t.Helper()
	first := w.acquire(l, name, opts...)
	q := w.lineUp(l, behind+1, name, opts...)
	require.NoError(w.t, first.Release(w.t.Context()))
	return q.next(0), q
}

func TestALeaseIsHandedOnToOneWhoCameAfterItWasWonByOneWhoHadWaited(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		first := w.acquire(a, "hot")
		q := w.lineUp(a, 1, "hot")
		require.NoError(t, first.Release(t.Context()))
		second := q.next(0) // nobody waits behind it
		q = w.lineUp(a, 1, "hot")
		require.NoError(t, second.Release(t.Context()))
		third := q.next(0)
		require.Equal(t, second.Owner(), third.Owner())
		require.Equal(t, second.Token()+1, third.Token())
		require.NoError(t, third.Release(t.Context()))
	})
}

func TestALeaseIsHandedOnInsideTheProcessWithTheNextTokenAndNoQuestion(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a := w.locker("a")
		lease, q := w.reserved(a, 3, "hot")
		require.NoError(t, lease.Save(t.Context(), []byte("one")))
		synctest.Wait()
		asked := w.fleet.Commands(0)
		for i := 1; i <= 3; i++ {
			require.NoError(t, lease.Release(t.Context()))
			require.ErrorIs(t, context.Cause(lease.Context()), redlock.ErrReleased)
			require.Equal(t, 5, w.lockedOn("hot"))
			next := q.next(i)
			assert.Equal(t, lease.Token()+1, next.Token())
			assert.Equal(t, lease.Owner(), next.Owner())
			assert.Equal(t, "one", string(next.State()))
			lease = next
		}
		synctest.Wait()
		require.Equal(t, asked, w.fleet.Commands(0))
		require.NoError(t, lease.Release(t.Context()))
		synctest.Wait()
		require.Zero(t, w.lockedOn("hot"))
		after := w.acquire(a, "hot")
		require.Greater(t, after.Token(), lease.Token())
		require.NoError(t, after.Release(t.Context()))
	})
}

// Waiting: "a bounded number of times and a bounded share of the TTL, after which other processes
// get their turn".
func TestAnotherProcessHasItsTurnAfterABoundedNumberOfHandOvers(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		lease, q := w.reserved(a, 299, "hot")
		others := w.lineUp(b, 1, "hot")
		i := 0
		for len(others.came) == 0 {
			require.Less(t, i, 200, "the other process waits for ever")
			require.NoError(t, lease.Release(t.Context()))
			synctest.Wait()
			time.Sleep(5 * time.Millisecond)
			synctest.Wait()
			if len(q.came) > 0 {
				i++
				lease = q.next(i)
			}
		}
		require.GreaterOrEqual(t, i, 63)
		lease = others.next(0)
		require.NoError(t, lease.Release(t.Context()))
		for i++; i < 300; i++ {
			require.NoError(t, q.next(i).Release(t.Context()))
		}
	})
}

func TestALeaseIsHandedOnForABoundedShareOfItsTTL(t *testing.T) {
	for held, owners := range map[time.Duration]int{990 * time.Millisecond: 1, 1010 * time.Millisecond: 2} {
		bubble(t, 3, func(t *testing.T, w *world) {
			lease, q := w.reserved(w.locker("a"), 1, "hot", redlock.WithTTL(8*time.Second))
			time.Sleep(held)
			require.NoError(t, lease.Release(t.Context()))
			next := q.next(1)
			seen := map[string]bool{lease.Owner(): true, next.Owner(): true}
			require.Len(t, seen, owners, "held for %v", held)
			require.GreaterOrEqual(t, next.Remaining(), 6*time.Second)
			require.NoError(t, next.Release(t.Context()))
		})
	}
}

func TestALeaseIsNotHandedOnWhereTheNextWouldGetLessThanItsOwn(t *testing.T) {
	for name, test := range map[string]struct {
		before func(t *testing.T, w *world, lease *redlock.Lease)
		opts   []redlock.LeaseOption // of the next
	}{
		"another TTL":   {opts: []redlock.LeaseOption{redlock.WithTTL(9 * time.Second)}},
		"more validity": {opts: []redlock.LeaseOption{redlock.WithMinValidity(7915 * time.Millisecond)}},
		"something to tell": {before: func(t *testing.T, _ *world, l *redlock.Lease) {
			require.NoError(t, l.Publish(t.Context(), []byte("news")))
		}},
		"a save that failed": {before: func(t *testing.T, w *world, l *redlock.Lease) {
			w.fleet.Partition(0, 1)
			require.Error(t, l.Save(t.Context(), []byte("unknown")))
			w.fleet.Heal()
		}},
		"an extension that failed": {before: func(t *testing.T, w *world, l *redlock.Lease) {
			w.fleet.Partition(0, 1)
			require.Error(t, l.Extend(t.Context()))
			w.fleet.Heal()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, w *world) {
				a := w.locker("a", redlock.WithNodeTimeout(20*time.Millisecond))
				first := w.acquire(a, "hot")
				one := w.lineUp(a, 1, "hot")
				two := w.lineUp(a, 1, "hot", test.opts...)
				require.NoError(t, first.Release(t.Context()))
				lease := one.next(0)
				time.Sleep(5 * time.Millisecond)
				if test.before != nil {
					test.before(t, w, lease)
				}
				_ = lease.Release(t.Context())
				next := two.next(0)
				assert.NotEqual(t, lease.Owner(), next.Owner())
				require.NoError(t, next.Release(t.Context()))
			})
		})
	}
}

func TestALeaseThatHasEndedIsNotHandedOn(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		lease, q := w.reserved(w.locker("a"), 1, "hot", redlock.WithTTL(time.Second))
		w.fleet.Partition(0, 1)
		time.Sleep(time.Second)
		w.fleet.Heal()
		require.ErrorIs(t, lease.Release(t.Context()), redlock.ErrLeaseExpired)
		next := q.next(1)
		require.NotEqual(t, lease.Owner(), next.Owner())
		require.NoError(t, next.Release(t.Context()))
	})
}

// Who gives up in the moment in which the turn comes leaves it to the next, or frees the name.
func TestAGiftThatNobodyTakesIsPassedOnOrReleased(t *testing.T) {
	for _, behind := range []int{0, 1} {
		bubble(t, 3, func(t *testing.T, w *world) {
			a := w.locker("a")
			lease, _ := w.reserved(a, 0, "warm")
			require.NoError(t, lease.Release(t.Context()))

			first := w.acquire(a, "hot")
			one := w.lineUp(a, 1, "hot")
			ctx, cancel := context.WithCancel(t.Context())
			gone := make(chan error, 1)
			go func() {
				lease, err := a.Acquire(ctx, "hot")
				if err == nil {
					err = errors.Join(errors.New("it was quicker"), lease.Release(t.Context()))
				}
				gone <- err
			}()
			synctest.Wait()
			rest := w.lineUp(a, behind, "hot")
			require.NoError(t, first.Release(t.Context()))
			lease = one.next(0)
			cancel() // both before the goroutine that waits can run
			require.NoError(t, lease.Release(t.Context()))
			require.ErrorIs(t, <-gone, context.Canceled)
			if behind > 0 {
				next := rest.next(0)
				assert.Equal(t, lease.Owner(), next.Owner())
				require.NoError(t, next.Release(t.Context()))
			}
			synctest.Wait()
			require.Zero(t, w.lockedOn("hot"))
			require.NoError(t, w.acquire(w.locker("b"), "hot").Release(t.Context()))
		})
	}
}

func TestCloseWhileALeaseIsHandedOnLeavesNothingBehind(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		for range 20 {
			a := w.locker("a")
			lease, q := w.reserved(a, 3, "hot")
			var both sync.WaitGroup
			both.Go(func() { _ = lease.Release(t.Context()) })
			both.Go(func() { _ = a.Close() })
			both.Wait()
			for range 3 {
				i := <-q.came
				if q.errs[i] == nil { // it was quicker, and its lease ended by Close
					require.ErrorIs(t, q.leases[i].Err(), redlock.ErrClosed)
				} else {
					require.ErrorIs(t, q.errs[i], redlock.ErrClosed)
				}
			}
			time.Sleep(redlock.DefaultTTL) // of a lease whose holder Close could not ask
			require.Zero(t, w.lockedOn("hot"))
		}
	})
}

// A rival whose clock is behind proposes a token from the middle of the range, or meets a node
// whose fence is in the middle of ours: nobody may be granted a token that somebody has had.
func TestNoTokenOfARangeIsGrantedToAnybodyElse(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		w.clock("b").Skew(-time.Second)
		lease, q := w.reserved(a, 3, "hot")
		for i := 1; i <= 3; i++ {
			require.NoError(t, lease.Release(t.Context()))
			lease = q.next(i)
		}
		require.NoError(t, lease.Release(t.Context()))
		rival := w.acquire(b, "hot")
		require.Greater(t, rival.Token(), lease.Token())
		require.NoError(t, rival.Release(t.Context()))
	})
}

// Or a rival's range could begin, on such nodes, below tokens that were handed on meanwhile.
func TestANodeThatIsHealedGetsTheFenceOfTheWholeRange(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		lease, q := w.reserved(w.locker("a"), 2, "hot")
		require.NoError(t, lease.Release(t.Context()))
		lease = q.next(1)
		w.fleet.Stop(0)
		w.fleet.RestartEmpty(0)
		healed := func() bool {
			err := lease.Extend(t.Context())
			return err == nil && w.lockedOn("hot") == 3
		}
		for i := 0; !healed(); i++ {
			require.Less(t, i, 100)
			time.Sleep(5 * time.Millisecond)
			synctest.Wait()
		}
		require.NoError(t, lease.Release(t.Context()))
		next := q.next(2)
		require.Equal(t, lease.Owner(), next.Owner())
		status, err := w.locker("b").Inspect(t.Context(), "hot")
		require.NoError(t, err)
		for _, n := range status.Nodes {
			assert.GreaterOrEqual(t, n.Fence, next.Token(), n.Node)
		}
		require.NoError(t, next.Release(t.Context()))
	})
}

// An extension of an earlier lease of the same owner that comes after all of them are over.
func TestALateExtensionOfALeaseThatWasHandedOnDoesNothing(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		lease, q := w.reserved(a, 1, "hot")
		for i := range 3 {
			w.fleet.DelayRequests(i, 50*time.Millisecond)
		}
		go func() { _ = lease.Extend(t.Context()) }()
		synctest.Wait()
		require.NoError(t, lease.Release(t.Context()))
		next := q.next(1)
		require.NoError(t, next.Release(t.Context()))
		for i := range 3 {
			w.fleet.DelayRequests(i, 0)
		}
		time.Sleep(time.Second)
		require.Zero(t, w.lockedOn("hot"))
	})
}
