package recipes

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
	"github.com/quorate/quorate/scheduler"
)

// What the page says of @every: cron counts it from the start of each replica, so no two of them mean one tick.
func TestAnIntervalOfCronsIsRunForEachReplicaAndOneOfTheSchedulersOnce(t *testing.T) {
	const spec, minutes = "@every 1m", 5
	synctest.Test(t, func(t *testing.T) {
		fleet := redlocktest.Start(t, 3)
		ctx, stop := context.WithCancel(t.Context())
		var wrapped, own atomic.Int32
		ended := make(chan error)
		var crons []*cron.Cron
		for _, host := range []string{"a", "b", "c"} {
			locker, err := redlock.New(fleet.Host(host).Clients(), redlock.WithIdentity(host),
				redlock.WithClock(redlocktest.NewClock()), redlock.WithLogger(slog.New(slog.DiscardHandler)))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, locker.Close()) })
			sched, err := scheduler.New(locker)
			require.NoError(t, err)

			c, err := cronAfter(locker, spec, func() { wrapped.Add(1) })
			require.NoError(t, err)
			crons = append(crons, c)
			require.NoError(t, sched.Add("own", spec, func(context.Context, scheduler.Run) error {
				own.Add(1)
				return nil
			}))
			go func() { ended <- sched.Run(ctx) }()
			pass(13 * time.Second) // replicas do not start in one moment
		}
		pass(minutes * time.Minute)
		for _, c := range crons {
			<-c.Stop().Done()
		}
		stop()
		for range crons {
			require.NoError(t, <-ended)
		}
		assert.InDelta(t, 3*minutes, wrapped.Load(), 2)
		assert.InDelta(t, minutes, own.Load(), 1)
	})
}

// pass lets time go by in a bubble.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // no time passes that anybody waits for
}
