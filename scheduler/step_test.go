package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/scheduler"
)

// policies are those under which steps are kept in different places.
var policies = map[string]scheduler.OverlapPolicy{"under the job's lease": scheduler.OverlapSkip, "under a lease of its own": scheduler.OverlapAllow}

func TestATakeoverResumesBehindTheLastStepThatWasCompleted(t *testing.T) {
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				var mu sync.Mutex
				var done []string
				do := func(step string) {
					mu.Lock()
					defer mu.Unlock()
					done = append(done, step)
				}
				work := func(ctx context.Context, r *replica, run scheduler.Run) error {
					if err := run.Step("reserve", func(context.Context) error { do("reserve"); return nil }); err != nil {
						return err
					}
					receipt, err := run.StepResult("charge", func(context.Context) ([]byte, error) {
						do("charge")
						return []byte("receipt of attempt 1\x00\xff"), nil
					})
					if err != nil {
						return err
					}
					assert.Equal(t, "receipt of attempt 1\x00\xff", string(receipt))
					assert.Equal(t, []string{"reserve", "charge"}, run.Steps())
					if run.Attempt == 1 {
						r.host.Partition()
						err := run.Step("ship", func(context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
						require.Error(t, err)
						r.host.Heal()
						return err
					}
					return run.Step("ship", func(context.Context) error { do("ship"); return nil })
				}
				a, b, c := w.replicas("0 * * * * *", work, scheduler.WithAtLeastOnce(3), scheduler.WithOverlap(policy))
				run(a, b, c)
				w.at(90 * time.Second)
				require.Len(t, w.ran(), 2)
				assert.Equal(t, []string{"reserve", "charge", "ship"}, done)
				assert.Equal(t, 1, a.count(scheduler.Ran)+b.count(scheduler.Ran)+c.count(scheduler.Ran))
				w.at(3*time.Minute + 30*time.Second)
				assert.GreaterOrEqual(t, len(done), 6, "the steps of another tick are its own")
			})
		})
	}
}

func TestAStepThatFailsIsNotCompletedAndARetryBeginsWithIt(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.replica("a")
		var calls []string
		a.add("@every 60s", func(_ context.Context, _ *replica, run scheduler.Run) error {
			for _, name := range []string{"one", "two"} {
				err := run.Step(name, func(context.Context) error {
					calls = append(calls, name)
					if name == "two" && run.Retry == 0 {
						return errors.New("not yet")
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		}, scheduler.WithRetry(func() backoff.BackOff { return backoff.NewConstantBackOff(time.Second) }))
		run(a)
		w.at(70 * time.Second)
		assert.Equal(t, []string{"one", "two", "two"}, calls)
	})
}

func TestAStepWithoutALeaseOrAfterTheRunIsNotRun(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.replica("a")
		var called atomic.Bool
		touch := func(context.Context) error { called.Store(true); return nil }
		var leaked scheduler.Run
		a.add("@every 60s", func(ctx context.Context, _ *replica, run scheduler.Run) error {
			leaked = run
			a.host.Partition()
			<-ctx.Done()
			return run.Step("late", touch)
		})
		run(a)
		w.at(80 * time.Second)
		a.host.Heal()
		require.Error(t, leaked.Step("later", touch))
		assert.False(t, called.Load())
		assert.Equal(t, 1, a.count(scheduler.Failed, scheduler.LeaseEnded))
	})
}

func TestAStepThatCannotBeRecordedIsAnError(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.replica("a")
		a.add("@every 60s", func(_ context.Context, _ *replica, run scheduler.Run) error {
			big := func(n int) func(context.Context) ([]byte, error) {
				return func(context.Context) ([]byte, error) { return make([]byte, n), nil }
			}
			_, err := run.StepResult("large", big(scheduler.MaxSteps-100))
			require.NoError(t, err)
			_, err = run.StepResult("one more", big(100))
			require.ErrorIs(t, err, scheduler.ErrSteps)
			require.ErrorContains(t, err, "the limit is 4096")
			require.ErrorIs(t, run.Step("", func(context.Context) error { return nil }), scheduler.ErrSteps)
			require.ErrorIs(t, run.Step(strings.Repeat("x", 200), func(context.Context) error { return nil }), scheduler.ErrSteps)
			w.fleet.Partition(0, 1)
			err = run.Step("cut off", func(context.Context) error { return nil })
			require.ErrorContains(t, err, "was done, and could not be recorded")
			w.fleet.Heal()
			time.Sleep(3 * time.Second) // until the nodes are trusted again
			return run.Step("healed", func(context.Context) error { return nil })
		})
		run(a)
		w.at(80 * time.Second)
		require.Equal(t, 1, a.count(scheduler.Ran), "%v", a.events)
		status, err := a.sched.Status(t.Context(), "tick")
		require.NoError(t, err)
		require.Len(t, status.History, 1)
	})
}

func TestStepsMayBeTakenAtTheSameTime(t *testing.T) {
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				a := w.replica("a")
				var n atomic.Int32
				a.add("@every 60s", func(_ context.Context, _ *replica, run scheduler.Run) error {
					var wg sync.WaitGroup
					for i := range 8 {
						wg.Go(func() {
							assert.NoError(t, run.Step(string(rune('a'+i)), func(context.Context) error { n.Add(1); return nil }))
						})
					}
					wg.Wait()
					assert.Len(t, run.Steps(), 8)
					if run.Retry == 0 {
						return errors.New("again")
					}
					return nil
				}, scheduler.WithOverlap(policy), scheduler.WithRetry(func() backoff.BackOff { return backoff.NewConstantBackOff(time.Second) }))
				run(a)
				w.at(70 * time.Second)
				assert.EqualValues(t, 8, n.Load())
			})
		})
	}
}

func TestARunThatATestHasMadeTakesItsSteps(t *testing.T) {
	called := false
	require.NoError(t, scheduler.Run{}.Step("x", func(context.Context) error { called = true; return nil }))
	assert.True(t, called)
	assert.Empty(t, scheduler.Run{}.Steps())
}

// A takeover needs room for its claim beside the steps.
func TestStepsLeaveRoomForATakeover(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var refused atomic.Bool
		work := func(ctx context.Context, r *replica, run scheduler.Run) error {
			if run.Attempt > 1 {
				return nil
			}
			for i := range 1000 {
				if err := run.Step(fmt.Sprint(i), func(context.Context) error { return nil }); err != nil {
					assert.ErrorIs(t, err, scheduler.ErrSteps)
					refused.Store(true)
					break
				}
			}
			r.host.Partition()
			<-ctx.Done()
			return ctx.Err()
		}
		w.at(5 * time.Second)
		for i, name := range []string{"a", strings.Repeat("b", 128)} {
			r := w.replica(name)
			r.add("0 * * * * *", work, scheduler.WithAtLeastOnce(2))
			r.clock.Skew(-time.Duration(i) * time.Second)
			run(r)
		}
		w.at(90 * time.Second)
		assert.True(t, refused.Load())
		require.Len(t, w.ran(), 2)
		assert.Equal(t, 2, w.ran()[1].Attempt)
	})
}

// A name is on record as JSON, which knows no other bytes: the step would not be found again.
func TestAStepWhoseNameIsNotTextIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var err error
		a := w.replica("a")
		a.add("0 * * * * *", func(_ context.Context, _ *replica, run scheduler.Run) error {
			err = run.Step("a\xff", func(context.Context) error { assert.Fail(t, "called"); return nil })
			return nil
		})
		run(a)
		w.at(61 * time.Second)
		require.ErrorIs(t, err, scheduler.ErrSteps)
	})
}
