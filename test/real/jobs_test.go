package real_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/scheduler"
	"github.com/quorate/quorate/test/redisserver"
)

// What is asked of a job reaches every replica by publication, within a second if that is lost.
func TestRequestsAreHeardByAllReplicasWithinASecond(t *testing.T) {
	t.Parallel()
	fleet := redisserver.StartFleet(t, 5)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ran := make(chan scheduler.Run, 100)
	var lockers []*redlock.Locker
	var ended []chan error
	for range 3 {
		locker := newLocker(t, fleet.Clients(), atEase()...)
		lockers = append(lockers, locker)
		sched, err := scheduler.New(locker)
		require.NoError(t, err)
		require.NoError(t, sched.Add("report", "@yearly", func(_ context.Context, run scheduler.Run) error {
			ran <- run
			return nil
		}))
		end := make(chan error, 1)
		ended = append(ended, end)
		go func() { end <- sched.Run(ctx) }()
	}
	awaitServing(t, lockers...)
	operator, err := scheduler.New(newLocker(t, fleet.Clients(), atEase()...))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return operator.Resume(ctx, "report") == nil }, soon, 10*time.Millisecond, "the replicas have told the nodes of the job")

	measured(t, func() string {
		var took []time.Duration
		for range 30 {
			start := time.Now()
			require.NoError(t, operator.Trigger(ctx, "report"))
			select {
			case run := <-ran:
				assert.Equal(t, scheduler.Triggered, run.Kind)
			case <-time.After(soon):
				t.Fatal("a trigger was not heard")
			}
			took = append(took, time.Since(start))
		}
		if late := quantile(took, 0.9); late > time.Second {
			return "one trigger of ten took " + late.String()
		}
		t.Logf("from the call of Trigger to the run: median %v, longest %v", median(took), quantile(took, 1))
		return ""
	})
	cancel()
	for _, end := range ended {
		require.NoError(t, <-end)
	}
	assert.Empty(t, ran, "each was run once")
}

// A crontab on real servers, of which one is killed and another one is emptied meanwhile.
func TestEachTickIsRunOnceWhileNodesFail(t *testing.T) {
	t.Parallel()
	fleet := redisserver.StartFleet(t, 3)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var runs [20]atomic.Int32
	var base atomic.Int64
	var lockers []*redlock.Locker
	var ended []chan error
	for range 3 {
		locker := newLocker(t, fleet.Clients(), atEase()...)
		lockers = append(lockers, locker)
		sched, err := scheduler.New(locker)
		require.NoError(t, err)
		require.NoError(t, sched.Add("tick", "@every 1s", func(_ context.Context, run scheduler.Run) error {
			base.CompareAndSwap(0, run.Scheduled.Unix())
			if n := run.Scheduled.Unix() - base.Load(); n >= 0 && n < int64(len(runs)) {
				runs[n].Add(1)
			}
			return nil
		}, scheduler.WithMisfire(scheduler.MisfireAll(100)), scheduler.WithOverlap(scheduler.OverlapQueue)))
		end := make(chan error, 1)
		ended = append(ended, end)
		go func() { end <- sched.Run(ctx) }()
	}
	awaitServing(t, lockers...)
	upTo := func(n int) {
		require.Eventually(t, func() bool { return runs[n].Load() > 0 }, 2*soon, 10*time.Millisecond, "tick %d", n)
	}
	upTo(3)
	fleet[0].Kill()
	upTo(8)
	fleet[0].RestartEmpty()
	upTo(len(runs) - 1)
	cancel()
	for _, end := range ended {
		require.NoError(t, <-end)
	}
	for n := range runs {
		assert.EqualValues(t, 1, runs[n].Load(), "runs of tick %d", n)
	}
}
