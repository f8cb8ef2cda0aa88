package redlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

func TestALeaseIsOnAllNodesAndGoneAfterRelease(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		lease := w.acquire(w.locker("a"), "sku:42")
		synctest.Wait()
		require.Equal(t, 5, w.lockedOn("sku:42"))
		require.Positive(t, lease.Token())
		require.Equal(t, "sku:42", lease.Name())
		require.NoError(t, lease.Err())
		require.Greater(t, lease.Remaining(), 7*time.Second)
		require.NoError(t, lease.Release(t.Context()))
		synctest.Wait()
		require.Zero(t, w.lockedOn("sku:42"))
		require.ErrorIs(t, context.Cause(lease.Context()), redlock.ErrReleased)
	})
}

func TestOnlyOneClientHoldsAName(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		first := w.acquire(a, "sku:42")
		_, err := b.TryAcquire(t.Context(), "sku:42")
		require.ErrorIs(t, err, redlock.ErrTaken)
		require.ErrorContains(t, err, "held by a/")
		other := w.acquire(b, "sku:43")
		require.NoError(t, first.Release(t.Context()))
		second := w.acquire(b, "sku:42")
		require.Greater(t, second.Token(), first.Token())
		require.NoError(t, second.Release(t.Context()))
		require.NoError(t, other.Release(t.Context()))
	})
}

func TestTheContextEndsWithTheValidityThoughNoNodeAnswers(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		lease := w.acquire(a, "job", redlock.WithAutoExtend(true))
		w.fleet.Host("a").Partition()
		end := lease.Remaining()
		start := time.Now()
		next := w.acquire(b, "job")
		require.Error(t, lease.Context().Err(), "the first holder must know before the second begins")
		require.ErrorIs(t, context.Cause(lease.Context()), redlock.ErrLeaseExpired)
		require.LessOrEqual(t, time.Since(start), 8*time.Second+100*time.Millisecond)
		require.GreaterOrEqual(t, time.Since(start), end)
		require.NoError(t, next.Release(t.Context()))
		w.fleet.Host("a").Heal()
	})
}

func TestDoExtendsForAsLongAsTheFunctionRuns(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		err := a.Do(t.Context(), "job", func(ctx context.Context, lease *redlock.Lease) error {
			for range 100 {
				time.Sleep(time.Second)
				require.NoError(t, ctx.Err())
				_, err := b.TryAcquire(ctx, "job")
				require.ErrorIs(t, err, redlock.ErrTaken)
			}
			found, ok := redlock.LeaseFrom(ctx)
			require.True(t, ok)
			require.Same(t, lease, found)
			return nil
		})
		require.NoError(t, err)
		synctest.Wait()
		require.Zero(t, w.lockedOn("job"))
	})
}

func TestDoTellsOfALeaseThatWasLostUnderTheFunction(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		err := w.locker("a").Do(t.Context(), "job", func(ctx context.Context, _ *redlock.Lease) error {
			w.fleet.Partition()
			<-ctx.Done()
			return nil
		})
		require.ErrorIs(t, err, redlock.ErrLeaseExpired)
		w.fleet.Heal()
	})
}

func TestDoReturnsTheFunctionsErrorAndReleasesOnPanic(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		boom := errors.New("boom")
		require.Same(t, boom, a.Do(t.Context(), "job", func(context.Context, *redlock.Lease) error { return boom }))
		require.Panics(t, func() {
			_ = a.Do(t.Context(), "job", func(context.Context, *redlock.Lease) error { panic("boom") })
		})
		synctest.Wait()
		require.Zero(t, w.lockedOn("job"))
	})
}

func TestDosContextEndsWithTheCallers(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("stop")
		err := w.locker("a").Do(ctx, "job", func(ctx context.Context, lease *redlock.Lease) error {
			cancel(stop)
			<-ctx.Done()
			require.NoError(t, lease.Err(), "the lease itself lasts until the function has returned")
			return context.Cause(ctx)
		})
		require.ErrorIs(t, err, stop)
		synctest.Wait()
		require.Zero(t, w.lockedOn("job"))
	})
}

func TestAnAcquiredLeaseDoesNotEndWithTheContextItWasAcquiredUnder(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		type key struct{}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "v"))
		lease, err := w.locker("a").Acquire(ctx, "job")
		require.NoError(t, err)
		cancel()
		require.NoError(t, lease.Context().Err())
		require.Equal(t, "v", lease.Context().Value(key{}))
		require.NoError(t, lease.Release(t.Context()))
	})
}

func TestAnAcquiredLeaseEndsByItselfUnlessExtended(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		lease := w.acquire(w.locker("a"), "job")
		time.Sleep(6 * time.Second)
		require.NoError(t, lease.Extend(t.Context()))
		time.Sleep(6 * time.Second)
		require.NoError(t, lease.Context().Err())
		time.Sleep(2 * time.Second)
		require.ErrorIs(t, lease.Err(), redlock.ErrLeaseExpired)
		require.ErrorIs(t, lease.Extend(t.Context()), redlock.ErrLeaseExpired)
		require.ErrorIs(t, lease.Release(t.Context()), redlock.ErrLeaseExpired)
		require.ErrorIs(t, lease.Save(t.Context(), nil), redlock.ErrLeaseExpired)
	})
}

func TestAMarginEndsTheContextWhileTheValidityLasts(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		lease := w.acquire(w.locker("a"), "job", redlock.WithMargin(2*time.Second))
		<-lease.Context().Done()
		require.InDelta(t, 2*time.Second, lease.Remaining(), float64(10*time.Millisecond))
		require.NoError(t, lease.Save(t.Context(), []byte("wound down")))
		require.Equal(t, 3, w.lockedOn("job"))
	})
}

func TestExtensionsAreBounded(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		start := time.Now()
		err := w.locker("a").Do(t.Context(), "job", func(ctx context.Context, lease *redlock.Lease) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}, redlock.WithMaxExtensions(3))
		require.ErrorIs(t, err, redlock.ErrExtensionLimit)
		require.InDelta(t, 16*time.Second, time.Since(start), float64(200*time.Millisecond))

		lease := w.acquire(w.locker("a"), "other", redlock.WithMaxExtensions(1))
		require.NoError(t, lease.Extend(t.Context()))
		require.ErrorIs(t, lease.Extend(t.Context()), redlock.ErrExtensionLimit)
		require.NoError(t, lease.Err(), "the lease goes on until its validity ends")
		require.NoError(t, lease.Release(t.Context()))
	})
}

func TestASuspendedHoldersContextHasEndedWhenItWakes(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		lease := w.acquire(w.locker("a"), "job", redlock.WithAutoExtend(true))
		w.clock("a").Suspend(time.Minute)
		require.ErrorIs(t, lease.Context().Err(), context.Canceled, "Err looks at the clock")

		lease = w.acquire(w.locker("a"), "other")
		w.clock("a").Suspend(time.Minute)
		start := time.Now()
		<-lease.Context().Done()
		require.LessOrEqual(t, time.Since(start), 250*time.Millisecond, "Done is closed soon after waking")
	})
}

func TestReleasingTwiceIsHarmless(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		first := w.acquire(a, "job")
		require.NoError(t, first.Release(t.Context()))
		second := w.acquire(a, "job")
		require.ErrorIs(t, first.Release(t.Context()), redlock.ErrReleased)
		synctest.Wait()
		require.Equal(t, 3, w.lockedOn("job"))
		require.NoError(t, second.Err())
		require.NoError(t, second.Release(t.Context()))
	})
}

func TestALeaseWhoseKeysWereDeletedIsLost(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		lease := w.acquire(a, "job", redlock.WithAutoExtend(true))
		for _, c := range w.fleet.Clients() {
			require.NoError(t, c.Del(t.Context(), redlock.DefaultKeyPrefix+"job").Err())
		}
		start := time.Now()
		<-lease.Context().Done()
		require.ErrorIs(t, lease.Err(), redlock.ErrLeaseLost)
		require.Less(t, time.Since(start), 3*time.Second, "the next extension finds out")
		require.ErrorIs(t, lease.Release(t.Context()), redlock.ErrLeaseLost)
	})
}
