package docs

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
	"github.com/quorate/quorate/scheduler"
)

// pause is what the page asks for between two restarts: the maximum TTL and three seconds.
const pause = redlock.DefaultMaxTTL + 3*time.Second

func replica(t *testing.T, fleet *redlocktest.Fleet, name string) *redlock.Locker {
	t.Helper()
	return lockerOf(t, name, fleet.Host(name).Clients())
}

// What the page says of restarting nodes: nobody else gets a name that is held, and the service goes on.
func TestARollingRestartByThePageLetsNoTwoHoldAndStopsNobody(t *testing.T) {
	for _, n := range []int{3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fleet := redlocktest.Start(t, n)
				holder, others := replica(t, fleet, "holder"), []*redlock.Locker{replica(t, fleet, "b"), replica(t, fleet, "c")}
				held, err := holder.Acquire(t.Context(), "held", redlock.WithAutoExtend(true))
				require.NoError(t, err)

				ctx, stop := context.WithCancel(t.Context())
				var inside, cycles atomic.Int32
				ended := make(chan struct{})
				for _, l := range others {
					go func() {
						defer func() { ended <- struct{}{} }()
						for ctx.Err() == nil {
							if _, err := l.TryAcquire(ctx, "held"); err == nil {
								t.Error("a rival holds what is held")
							}
							before := time.Now()
							err := l.Do(ctx, "busy", func(context.Context, *redlock.Lease) error {
								assert.EqualValues(t, 1, inside.Add(1))
								pass(500 * time.Millisecond)
								inside.Add(-1)
								return nil
							})
							if ctx.Err() == nil {
								assert.NoError(t, err)
								assert.Less(t, time.Since(before), 3*time.Second)
								cycles.Add(1)
							}
						}
					}()
				}
				for i := range n {
					fleet.Stop(i)
					pass(time.Second) // an upgrade takes its time
					fleet.RestartEmpty(i)
					pass(pause)
					require.NoError(t, held.Err(), "after node %d", i)
				}
				stop()
				for range others {
					<-ended
				}
				assert.Greater(t, cycles.Load(), int32(50))
				require.NoError(t, held.Release(t.Context()))
			})
		})
	}
}

// What the page says of jobs: their registers are held by nobody between two ticks, so it is the nodes that have to
// keep them. Where nodes come back empty here, the pause is gone and ticks are run twice.
func TestARollingRestartOfNodesThatKeepTheirDataLosesNoPauseAndRunsNoTickTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := redlocktest.Start(t, 3)
		sched, err := scheduler.New(replica(t, fleet, "a"), scheduler.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		var runs sync.Map // of a tick: how often
		require.NoError(t, sched.Add("report", "*/10 * * * *", func(_ context.Context, run scheduler.Run) error {
			n, _ := runs.LoadOrStore(run.Scheduled, new(atomic.Int32))
			n.(*atomic.Int32).Add(1)
			return nil
		}, scheduler.WithMisfire(scheduler.MisfireAll(100))))
		require.NoError(t, sched.Add("paused", "@yearly", func(context.Context, scheduler.Run) error { return nil }))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- sched.Run(ctx) }()
		pass(time.Minute)
		require.NoError(t, sched.Pause(t.Context(), "paused"))
		pass(30 * time.Minute)
		for i := range 3 {
			fleet.Restart(i)
			pass(pause)
		}
		pass(20 * time.Minute)
		status, err := sched.Status(t.Context(), "paused")
		require.NoError(t, err)
		assert.True(t, status.Paused)
		ticks := 0
		runs.Range(func(tick, n any) bool {
			ticks++
			assert.EqualValues(t, 1, n.(*atomic.Int32).Load(), "tick %v", tick)
			return true
		})
		assert.Equal(t, 5, ticks)
		stop()
		require.NoError(t, <-ended)
	})
}

func lockerOf(t *testing.T, name string, clients []redis.UniversalClient) *redlock.Locker {
	t.Helper()
	l, err := redlock.New(clients, redlock.WithClock(redlocktest.NewClock()), redlock.WithIdentity(name),
		redlock.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

// pass lets time go by in a bubble.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // no time passes that anybody waits for
}
