package redlock_test

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/quorate/quorate/redlock"
)

func TestTakenIsToldThoughAMinorityIsDown(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		lease := w.acquire(a, "job", redlock.WithAutoExtend(true))
		w.fleet.Stop(0)
		_, _ = b.TryAcquire(t.Context(), "other") // b learns that node 0 is down
		time.Sleep(time.Second)
		w.fleet.Delay(2, 5*time.Millisecond)
		_, err := b.TryAcquire(t.Context(), "job")
		require.ErrorIs(t, err, redlock.ErrTaken)
		require.NotErrorIs(t, err, redlock.ErrNoQuorum)
		require.NoError(t, lease.Release(t.Context()))
	})
}

func TestWaitersThatMeetAfterAWakeUpDoNotSleepOnAFreeName(t *testing.T) {
	for range 5 {
		bubble(t, 5, func(t *testing.T, w *world) {
			lease := w.acquire(w.locker("h"), "job", redlock.WithAutoExtend(true))
			var wg sync.WaitGroup
			for _, h := range []string{"a", "b", "c", "d", "e"} {
				l := w.locker(h)
				wg.Go(func() {
					if lease, err := l.Acquire(t.Context(), "job"); err != nil {
						t.Error(err)
					} else if err := lease.Release(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			for i := range 5 {
				w.fleet.Delay(i, time.Duration(i)*100*time.Microsecond)
			}
			time.Sleep(time.Minute) // the backoff is at its longest by now
			freed := time.Now()
			require.NoError(t, lease.Release(t.Context()))
			wg.Wait()
			require.Less(t, time.Since(freed), 500*time.Millisecond)
		})
	}
}

func TestAnAttemptOnHungNodesIsWithdrawnHoweverLateTheyResume(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		require.NoError(t, w.acquire(a, "warm-up").Release(t.Context()))
		for i := range 3 {
			w.fleet.Hang(i)
		}
		_, err := a.TryAcquire(t.Context(), "job")
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		time.Sleep(20 * time.Second)
		for i := range 3 {
			w.fleet.Resume(i)
		}
		time.Sleep(2 * time.Second)
		require.Zero(t, w.lockedOn("job"))
	})
}

// lossy loses the answer to one script that is sent in full.
type lossy struct{ armed atomic.Bool }

func (h *lossy) DialHook(n redis.DialHook) redis.DialHook          { return n }
func (h *lossy) ProcessHook(n redis.ProcessHook) redis.ProcessHook { return n }
func (h *lossy) ProcessPipelineHook(n redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := n(ctx, cmds)
		if cmds[0].Name() == "eval" && h.armed.Swap(false) {
			for _, c := range cmds {
				c.SetErr(io.EOF)
			}
			return io.EOF
		}
		return err
	}
}

func TestStateIsPutBackOnAnEmptyNodeThoughOneAnswerWasLost(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		clients := w.fleet.Host("a").Clients()
		h := &lossy{}
		clients[0].AddHook(h)
		a, err := redlock.New(clients, redlock.WithClock(w.clock("a")), redlock.WithLogger(quiet()))
		require.NoError(t, err)
		defer func() { require.NoError(t, a.Close()) }()
		lease := w.acquire(a, "job", redlock.WithAutoExtend(true))
		require.NoError(t, lease.Save(t.Context(), []byte("precious")))
		w.fleet.RestartEmpty(0)
		h.armed.Store(true)
		time.Sleep(time.Minute)
		require.False(t, h.armed.Load())
		v, _ := w.fleet.Get(0, "{quorate:job}:fence")
		require.Contains(t, v, "precious")
		require.NoError(t, lease.Release(t.Context()))
	})
}

// meters calls a function whenever a lease has been entered.
type meters struct {
	noop.MeterProvider
	held func()
}

type meter struct {
	noop.Meter
	held func()
}

type upDown struct {
	noop.Int64UpDownCounter
	held func()
}

func (m meters) Meter(string, ...metric.MeterOption) metric.Meter { return meter{held: m.held} }

func (m meter) Int64UpDownCounter(string, ...metric.Int64UpDownCounterOption) (metric.Int64UpDownCounter, error) {
	return upDown{held: m.held}, nil
}

func (c upDown) Add(_ context.Context, n int64, _ ...metric.AddOption) {
	if n > 0 {
		c.held()
	}
}

func TestCloseWhileALeaseIsBeingMadeEndsIt(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		var a *redlock.Locker
		closed := make(chan struct{})
		a = w.locker("a", redlock.WithMeterProvider(meters{held: func() {
			go func() {
				defer close(closed)
				_ = a.Close()
			}()
			time.Sleep(time.Millisecond) // until Close waits for this call
		}}))
		lease, err := a.Acquire(t.Context(), "job")
		require.NoError(t, err)
		require.ErrorIs(t, lease.Err(), redlock.ErrClosed)
		<-closed
	})
}

func TestCloseEndsADialThatNobodyElseWouldEnd(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		w.fleet.Host("b").Partition(0)
		lease := w.acquire(a, "job", redlock.WithAutoExtend(true))
		ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
		defer cancel()
		_, err := b.Acquire(ctx, "job")
		require.Error(t, err)
		begin := time.Now()
		require.NoError(t, b.Close())
		require.Less(t, time.Since(begin), 10*time.Second)
		require.NoError(t, lease.Release(t.Context()))
		w.fleet.Host("b").Heal()
	})
}

func TestWhoGaveUpBecauseNoNodeAnsweredIsToldSo(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		for i := range 3 {
			w.fleet.Hang(i)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := w.locker("a").Acquire(ctx, "job")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.NotContains(t, err.Error(), "others in this process")
		for i := range 3 {
			w.fleet.Resume(i)
		}
	})
}
