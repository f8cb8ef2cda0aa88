package recipes

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock/redlocktest"
	"github.com/quorate/quorate/scheduler"
)

const replicas = 3

// gocron's jobs are not told their tick, so runs are counted by the time in which they begin. That is wide
// enough for a busy machine: a run that begins less than an interval late is counted for its tick.
const (
	interval   = 3 * time.Second
	atInterval = "*/3 * * * * *"
)

// tally counts runs by the interval in which they began.
type tally struct {
	mu   sync.Mutex
	runs map[int64]int
}

func newTally() *tally { return &tally{runs: map[int64]int{}} }

func (c *tally) report() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs[time.Now().UnixNano()/int64(interval)]++
}

func (c *tally) total() (runs, ticks, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.runs {
		runs += n
		most = max(most, n)
	}
	return runs, len(c.runs), most
}

func TestALockByTheJobsNameLetsEachReplicaRunTheTickAndTheIntervalDoesNot(t *testing.T) {
	fleet, _ := fleetOf(t, 3)
	c := newTally()
	stop := start(t, func() (gocron.Scheduler, error) {
		return gocronBefore(fleet.Clients()[0], atInterval, c.report)
	})
	require.Eventually(t, func() bool { _, _, most := c.total(); return most > 1 },
		30*time.Second, 10*time.Millisecond, "a tick is run more than once")
	stop()

	after := newTally()
	stop = start(t, func() (gocron.Scheduler, error) {
		return gocronAfter(lockerOn(t, fleet), atInterval, interval, after.report)
	})
	require.Eventually(t, func() bool { _, ticks, _ := after.total(); return ticks >= 2 },
		30*time.Second, 10*time.Millisecond)
	stop()
	runs, ticks, most := after.total()
	require.Equal(t, 1, most, "%d runs of %d ticks", runs, ticks)
}

// start is the service's replicas, until stop.
func start(t *testing.T, replica func() (gocron.Scheduler, error)) (stop func()) {
	t.Helper()
	var scheds []gocron.Scheduler
	for range replicas {
		sched, err := replica()
		require.NoError(t, err)
		sched.Start()
		scheds = append(scheds, sched)
	}
	return func() {
		for _, s := range scheds {
			require.NoError(t, s.Shutdown())
		}
	}
}

// requireOneRunForEachTick asks the register, which knows the tick of each run.
func requireOneRunForEachTick(t *testing.T, fleet *redlocktest.Fleet, runs int32) {
	t.Helper()
	sched, err := scheduler.New(lockerOn(t, fleet))
	require.NoError(t, err)
	history, err := sched.History(t.Context(), "report")
	require.NoError(t, err)
	seen, ran := map[time.Time]bool{}, int32(0)
	for _, r := range history {
		if r.Outcome != scheduler.Ran {
			continue
		}
		ran++
		require.False(t, seen[r.Scheduled], "the tick %v was run twice", r.Scheduled)
		seen[r.Scheduled] = true
	}
	require.Equal(t, runs, ran, "as many runs as ticks")
}

func TestWithoutGocronEachTickIsRunOnceAndTheSchedulerEndsWithItsContext(t *testing.T) {
	fleet := redlocktest.Start(t, 3)
	ctx, cancel := context.WithCancel(within(t, 60*time.Second))
	var runs atomic.Int32
	var running sync.WaitGroup
	for range replicas {
		locker := lockerOn(t, fleet)
		running.Go(func() {
			err := gocronWithout(ctx, locker, "* * * * * *", func(context.Context) error { runs.Add(1); return nil })
			if err != nil {
				t.Error(err)
			}
		})
	}
	require.Eventually(t, func() bool { return runs.Load() >= 3 }, 30*time.Second, 10*time.Millisecond)
	cancel()
	running.Wait()
	requireOneRunForEachTick(t, fleet, runs.Load())
}

func TestCronRunsAJobOnEachReplicaAndWithASingletonOnOne(t *testing.T) {
	// A crontab of minutes would be too slow here, and one of seconds is not in cron's standard form. The
	// ticks of "@every 1s" are whole seconds, so the replicas agree on them.
	const spec = "@every 1s"
	ran := [replicas]atomic.Int32{}
	for i := range replicas {
		c, err := cronBefore(spec, func() { ran[i].Add(1) })
		require.NoError(t, err)
		defer func() { <-c.Stop().Done() }()
	}
	require.Eventually(t, func() bool { return ran[0].Load() > 0 && ran[1].Load() > 0 && ran[2].Load() > 0 },
		30*time.Second, 10*time.Millisecond)

	fleet := redlocktest.Start(t, 3)
	var runs atomic.Int32
	var stops []func() context.Context
	for range replicas {
		c, err := cronAfter(lockerOn(t, fleet), spec, func() { runs.Add(1) })
		require.NoError(t, err)
		stops = append(stops, c.Stop)
	}
	require.Eventually(t, func() bool { return runs.Load() >= 3 }, 30*time.Second, 10*time.Millisecond)
	for _, stop := range stops {
		<-stop().Done()
	}
	requireOneRunForEachTick(t, fleet, runs.Load())
}
