package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
	late := make(chan error, 1)
	go func() {
		late <- seller.sell(t.Context(), product, func(left int) (int, error) {
			close(hasRead)
			<-goOn
			return buyOne(left)
		})
	}()
	select {
	case <-hasRead:
	case err := <-late:
		require.FailNow(t, "it has not read", "%v", err)
	}
	require.NoError(t, s.seller(guarded, 1).sell(t.Context(), product, buyOne)) // when the lease has run out
	close(goOn)
	return <-late
}

// A paused process extends no lease: that is all that this leaves out.
func (s *shop) pausedSeller() *guardedSeller {
	s.t.Helper()
	guard, err := fencing.NewGuard(s.locker(), s.store.gate.On(s.db), fencing.WithLease(redlock.WithTTL(2*time.Second), redlock.WithAutoExtend(false)))
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
	seller, err := newBatchSeller(s.pausedSeller())
	require.NoError(t, err)
	require.ErrorIs(t, late(t, s, seller), fencing.ErrStaleToken)
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

func TestABatchIsServedInItsOrderAndWrittenOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t, 3)
	one := s.seller(guarded, 0).(*guardedSeller)
	seller, err := newBatchSeller(one)
	require.NoError(t, err)
	var seen []int
	var batch []*buyer
	for range 4 {
		batch = append(batch, &buyer{sku: product, decide: func(left int) (int, error) {
			seen = append(seen, left)
			return buyOne(left)
		}})
	}
	require.NoError(t, one.guard.Do(t.Context(), resource(product), func(ctx context.Context, token redlock.Token) error {
		return seller.serve(ctx, resource(product), token, batch)
	}))
	assert.Equal(t, []int{3, 2, 1, 0}, seen, "each sees what those before him have left")
	for i, b := range batch {
		assert.True(t, b.served)
		if i < 3 {
			require.NoError(t, b.err)
		} else {
			require.ErrorIs(t, b.err, errSoldOut)
		}
	}
	s.requireSold(3, 0)
}
