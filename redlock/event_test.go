package redlock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

func TestAnObserverIsToldOfEachLeaseAndOfEachRefusal(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		var mu sync.Mutex
		var events []redlock.Event
		l := w.locker("a", redlock.WithObserver(func(e redlock.Event) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, e)
		}))
		last := func(n int) redlock.Event {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			require.Len(t, events, n)
			return events[n-1]
		}

		lease := w.acquire(l, "job")
		e := last(1)
		require.Equal(t, redlock.Acquired, e.Kind)
		require.Equal(t, "job", e.Name)
		require.Equal(t, lease.Token(), e.Token)
		require.NoError(t, e.Err)

		_, err := l.TryAcquire(t.Context(), "job")
		require.ErrorIs(t, err, redlock.ErrTaken)
		e = last(2)
		require.Equal(t, redlock.Refused, e.Kind)
		require.Zero(t, e.Token)
		require.ErrorIs(t, e.Err, redlock.ErrTaken)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err = l.Acquire(ctx, "job")
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		e = last(3)
		require.Equal(t, redlock.Refused, e.Kind)
		require.InDelta(t, time.Second, e.Wait, float64(10*time.Millisecond))

		time.Sleep(time.Second)
		require.NoError(t, lease.Release(t.Context()))
		e = last(4)
		require.Equal(t, redlock.Ended, e.Kind)
		require.Equal(t, lease.Token(), e.Token)
		require.InDelta(t, 2*time.Second, e.Held, float64(10*time.Millisecond))
		require.NoError(t, e.Err)

		lost := w.acquire(l, "job")
		<-lost.Context().Done()
		e = last(6)
		require.Equal(t, redlock.Ended, e.Kind)
		require.ErrorIs(t, e.Err, redlock.ErrLeaseExpired)
		require.ErrorIs(t, lost.Release(t.Context()), redlock.ErrLeaseExpired)
		last(6)

		_, err = l.Acquire(t.Context(), "")
		require.ErrorIs(t, err, redlock.ErrInvalidName)
		last(6) // a name that cannot be asked for was not asked for

		w.acquire(l, "job")
		require.NoError(t, l.Close())
		require.ErrorIs(t, last(8).Err, redlock.ErrClosed)
	})
}
