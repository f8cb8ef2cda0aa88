package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

func TestWithoutAGuardTheLastUnitIsSoldTwice(t *testing.T) {
	t.Parallel()
	s := newShop(t, 1)
	seller := s.seller(noGuard, 1)
	var bothHaveRead, buyers sync.WaitGroup
	bothHaveRead.Add(2)
	for range 2 {
		buyers.Go(func() {
			assert.NoError(t, seller.sell(t.Context(), product, func(left int) (int, error) {
				bothHaveRead.Done()
				bothHaveRead.Wait()
				return buyOne(left)
			}))
		})
	}
	buyers.Wait()
	s.requireSold(2, 0)
}

func TestTheOtherWaysSellEachUnitOnce(t *testing.T) {
	t.Parallel()
	const units, buyers = 20, 40
	for _, w := range []way{rowLock, guarded, batched} {
		t.Run(string(w), func(t *testing.T) {
			t.Parallel()
			s := newShop(t, units)
			replicas := []seller{s.seller(w, buyers), s.seller(w, buyers)}
			var sold, soldOut atomic.Int64
			var all sync.WaitGroup
			for i := range buyers {
				all.Go(func() {
					switch err := replicas[i%2].sell(t.Context(), product, buyOne); {
					case err == nil:
						sold.Add(1)
					case errors.Is(err, errSoldOut):
						soldOut.Add(1)
					default:
						assert.NoError(t, err)
					}
				})
			}
			all.Wait()
			assert.EqualValues(t, units, sold.Load())
			assert.EqualValues(t, buyers-units, soldOut.Load())
			s.requireSold(units, 0)
		})
	}
}

// late has a seller read, and write when another replica has sold in the meantime.
func late(t *testing.T, s *shop, seller seller) error {
	t.Helper()
	hasRead, goOn := make(chan struct{}), make(chan struct{})
	late := make(chan error)
	go func() {
		late <- seller.sell(t.Context(), product, func(left int) (int, error) {
			close(hasRead)
			<-goOn
			return buyOne(left)
		})
	}()
	<-hasRead
	require.NoError(t, s.seller(guarded, 1).sell(t.Context(), product, buyOne)) // when the lease has run out
	close(goOn)
	return <-late
}

// A paused process extends no lease: that is all that this leaves out.
func (s *shop) pausedSeller() *guardedSeller {
	s.t.Helper()
	guard, err := fencing.NewGuard(s.locker(), s.store.gate.On(s.db), fencing.WithLease(redlock.WithAutoExtend(false)))
	require.NoError(s.t, err)
	return &guardedSeller{store: s.store, guard: guard}
}

func TestTheGateRefusesALateWrite(t *testing.T) {
	t.Parallel()
	s := newShop(t, 10)
	require.ErrorIs(t, late(t, s, s.pausedSeller()), fencing.ErrStaleToken)
	s.requireSold(1, 9)
}

func TestTheGateRefusesALateBatch(t *testing.T) {
	t.Parallel()
	s := newShop(t, 10)
	require.ErrorIs(t, late(t, s, newBatchSeller(s.pausedSeller(), 0)), fencing.ErrStaleToken)
	s.requireSold(1, 9)
}

func TestNothingIsWrittenOutsideOfAGuard(t *testing.T) {
	t.Parallel()
	s := newShop(t, 10)
	require.ErrorIs(t, s.store.saveGuarded(t.Context(), product, 9, []int{1}), fencing.ErrNoToken)
	s.requireSold(0, 10)
}

func TestAWriteThatMayHaveGotThroughIsToldSo(t *testing.T) {
	t.Parallel()
	s := newShop(t, 10)
	seller := s.seller(guarded, 1)
	err := seller.sell(t.Context(), product, func(left int) (int, error) {
		return 1, s.db.Close()
	})
	require.ErrorIs(t, err, errUnsure)
}

func TestABatchIsOneSectionForAllWhoWait(t *testing.T) {
	t.Parallel()
	s := newShop(t, 3)
	seller := newBatchSeller(s.seller(guarded, 0).(*guardedSeller), 0)
	hasRead, goOn := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		assert.NoError(t, seller.sell(t.Context(), product, func(left int) (int, error) {
			close(hasRead)
			<-goOn
			return buyOne(left)
		}))
	})
	<-hasRead
	// Three come while the first is served, and are served together: two get a unit.
	answers := make(chan error, 3)
	var seen []int
	for i := range 3 {
		me := &buyer{done: answers, decide: func(left int) (int, error) {
			seen = append(seen, left)
			return buyOne(left)
		}}
		require.NoError(t, seller.join(product, me), i)
	}
	close(goOn)
	all.Wait()
	var sold int
	for range 3 {
		if err := <-answers; err == nil {
			sold++
		} else {
			require.ErrorIs(t, err, errSoldOut)
		}
	}
	assert.Equal(t, 2, sold)
	assert.Equal(t, []int{2, 1, 0}, seen, "each sees what those before him have left")
	s.requireSold(3, 0)
}

func TestALineThatIsFullIsNotJoined(t *testing.T) {
	t.Parallel()
	s := newShop(t, 10)
	seller := newBatchSeller(s.seller(guarded, 0).(*guardedSeller), 1)
	hasRead, goOn := make(chan struct{}), make(chan struct{})
	served := make(chan error)
	go func() {
		served <- seller.sell(context.Background(), product, func(left int) (int, error) {
			close(hasRead)
			<-goOn
			return buyOne(left)
		})
	}()
	<-hasRead
	waiting := &buyer{decide: buyOne, done: make(chan error, 1)}
	require.NoError(t, seller.join(product, waiting))
	require.ErrorIs(t, seller.sell(t.Context(), product, buyOne), fencing.ErrQueueFull)
	close(goOn)
	require.NoError(t, <-served)
	require.NoError(t, <-waiting.done)
	s.requireSold(2, 8)
}
