package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

func TestACancelledAcquireLeavesNoKey(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a := w.locker("a")
		for i := range 5 {
			w.fleet.Delay(i, time.Duration(i+1)*time.Millisecond)
		}
		require.NoError(t, w.acquire(a, "warm-up").Release(t.Context()))
		for after := time.Duration(0); after < 8*time.Millisecond; after += 250 * time.Microsecond {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			lease, err := a.Acquire(ctx, "sku:42")
			cancel()
			if err == nil {
				require.NoError(t, lease.Release(t.Context()))
			} else {
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
			time.Sleep(100 * time.Millisecond)
			require.Zero(t, w.lockedOn("sku:42"), "cancelled after %v", after)
		}
	})
}

func TestAnAcquireThatWasCancelledWhileANodeHungLeavesNoKeyOnItsReturn(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		require.NoError(t, w.acquire(a, "warm-up").Release(t.Context()))
		w.fleet.Hang(0)
		w.fleet.Hang(1)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		_, err := a.Acquire(ctx, "sku:42")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(2 * time.Second)
		w.fleet.Resume(0)
		w.fleet.Resume(1)
		time.Sleep(100 * time.Millisecond)
		require.Zero(t, w.lockedOn("sku:42"))
	})
}

func TestWaitersOfOneProcessAreServedInTheOrderOfTheirArrival(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		first := w.acquire(a, "sku:42")
		var mu sync.Mutex
		var order []int
		var last redlock.Token
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				lease, err := a.Acquire(t.Context(), "sku:42")
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, i)
				if lease.Token() <= last {
					t.Errorf("token %d after %d", lease.Token(), last)
				}
				last = lease.Token()
				mu.Unlock()
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		require.NoError(t, first.Release(t.Context()))
		wg.Wait()
		require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, order)
	})
}

func TestAWaiterThatGivesUpLeavesTheLine(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		held := w.acquire(a, "sku:42")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := a.Acquire(ctx, "sku:42")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var gaveUp *redlock.AcquireError
		require.ErrorAs(t, err, &gaveUp)
		require.Zero(t, gaveUp.Attempts)
		require.Equal(t, time.Second, gaveUp.Waited)
		require.NoError(t, held.Release(t.Context()))
		require.NoError(t, w.acquire(a, "sku:42").Release(t.Context()))
	})
}

func TestAReleaseWakesAWaiterOfAnotherProcessAtOnce(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		held := w.acquire(a, "sku:42", redlock.WithAutoExtend(true))
		var took time.Duration
		var wg sync.WaitGroup
		var released time.Time
		wg.Go(func() {
			lease, err := b.Acquire(t.Context(), "sku:42")
			if err != nil {
				t.Error(err)
				return
			}
			took = time.Since(released)
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(30 * time.Second) // the backoff is at its longest by now
		released = time.Now()
		require.NoError(t, held.Release(t.Context()))
		wg.Wait()
		require.Less(t, took, time.Millisecond)
	})
}

func TestALostPublicationDelaysAWaiterByTheBackoffOnly(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		b := w.locker("b")
		// A plain Redlock client publishes nothing.
		clients := w.fleet.Clients()
		for _, c := range clients {
			require.NoError(t, c.Set(t.Context(), redlock.DefaultKeyPrefix+"sku:42", "foreign", time.Hour).Err())
		}
		var wg sync.WaitGroup
		var freed time.Time
		wg.Go(func() {
			lease, err := b.Acquire(t.Context(), "sku:42")
			if err != nil {
				t.Error(err)
				return
			}
			if took := time.Since(freed); took > 7*time.Second {
				t.Errorf("the waiter looked again after %v", took)
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Minute)
		freed = time.Now()
		for _, c := range clients {
			require.NoError(t, c.Del(t.Context(), redlock.DefaultKeyPrefix+"sku:42").Err())
		}
		wg.Wait()
	})
}

// Those within the scripts included: a look has two, and every fourth of them one more.
func TestAnIdleWaiterCostsAtMostOneCommandPerNodeAndSecond(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		held := w.acquire(w.locker("a"), "sku:42", redlock.WithAutoExtend(true))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		b, seen := w.watched("b")
		wg.Go(func() { _, _ = b.Acquire(ctx, "sku:42") })
		time.Sleep(20 * time.Second) // the first attempts are closer together
		before, asked := w.fleet.Commands(0), len(seen.gaps())
		time.Sleep(200 * time.Second)
		extensions := 200 / (8.0 / 3)
		commands := float64(w.fleet.Commands(0)-before) - extensions
		looks := float64(len(seen.gaps()) - asked)
		require.Greater(t, looks, 20.0, "it does not rely on being called")
		require.LessOrEqual(t, (commands+2.25*looks)/200, 1.0)
		wg.Wait()
		require.NoError(t, held.Release(t.Context()))
	})
}

func TestManyProcessesOnOneNameAllHaveTheirTurns(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		const hosts, turns = 6, 20
		for i := range 5 {
			w.fleet.Delay(i, time.Millisecond)
		}
		var mu sync.Mutex
		var last redlock.Token
		var wg sync.WaitGroup
		for h := range hosts {
			l := w.locker(fmt.Sprintf("h%d", h))
			wg.Go(func() {
				for range turns {
					lease, err := l.Acquire(t.Context(), "hot")
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					if lease.Token() <= last {
						t.Errorf("token %d after %d", lease.Token(), last)
					}
					last = lease.Token()
					mu.Unlock()
					time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
					if err := lease.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		begin := time.Now()
		wg.Wait()
		require.Less(t, time.Since(begin), time.Minute)
	})
}

func TestLosersDoNotWakeEachOther(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		require.NoError(t, w.acquire(a, "warm-up").Release(t.Context()))
		require.NoError(t, w.acquire(b, "warm-up").Release(t.Context()))
		// Two nodes accept locks but do not count, so that every attempt is withdrawn.
		w.fleet.RestartEmpty(0)
		w.fleet.RestartEmpty(1)
		before := w.fleet.Commands(2)
		var wg sync.WaitGroup
		for _, l := range []*redlock.Locker{a, b} {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
				defer cancel()
				_, err := l.Acquire(ctx, "sku:42")
				if !errors.Is(err, redlock.ErrQuarantined) {
					t.Errorf("unexpected: %v", err)
				}
			})
		}
		wg.Wait()
		require.Less(t, w.fleet.Commands(2)-before, 150)
	})
}

func TestAttemptsCanBeBounded(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		held := w.acquire(w.locker("a"), "sku:42", redlock.WithAutoExtend(true))
		_, err := w.locker("b").Acquire(t.Context(), "sku:42", redlock.WithMaxAttempts(3))
		require.ErrorIs(t, err, redlock.ErrTaken)
		var gaveUp *redlock.AcquireError
		require.ErrorAs(t, err, &gaveUp)
		require.Equal(t, 3, gaveUp.Attempts)
		require.NoError(t, held.Release(t.Context()))
	})
}

func TestADeadHolderIsReplacedWithinTheTTL(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		begin := time.Now()
		w.acquire(a, "sku:42")
		w.fleet.Host("a").Partition()
		lease := w.acquire(b, "sku:42")
		require.LessOrEqual(t, time.Since(begin), redlock.DefaultTTL+100*time.Millisecond)
		require.NoError(t, lease.Release(t.Context()))
		w.fleet.Host("a").Heal()
	})
}

func TestTokensGrowThoughWallClocksAreTenMinutesApart(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		w.clock("ahead").Skew(10 * time.Minute)
		lockers := []*redlock.Locker{w.locker("behind"), w.locker("ahead")}
		var last redlock.Token
		for i := range 200 {
			lease := w.acquire(lockers[i%2], "sku:42")
			require.Greater(t, lease.Token(), last)
			last = lease.Token()
			require.NoError(t, lease.Release(t.Context()))
		}
	})
}

func TestTheCommonAcquisitionIsOneRoundTripAndOneScriptCallPerNode(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		require.NoError(t, w.acquire(a, "sku:42").Release(t.Context()))
		time.Sleep(time.Second)
		for i := range 3 {
			w.fleet.Delay(i, 10*time.Millisecond)
		}
		before, begin := w.fleet.Commands(0), time.Now()
		lease := w.acquire(a, "sku:42")
		require.Equal(t, 10*time.Millisecond, time.Since(begin))
		require.Equal(t, 1, w.fleet.Commands(0)-before)
		begin = time.Now()
		require.NoError(t, lease.Release(t.Context()))
		require.Equal(t, 10*time.Millisecond, time.Since(begin))
		require.Equal(t, 2, w.fleet.Commands(0)-before)
	})
}
