package scheduler_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/scheduler"
)

func TestATickThatComesDueDuringARunIsSkippedAcrossTheFleet(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var running, most atomic.Int32
		work := func(context.Context, *replica, scheduler.Run) error {
			most.Store(max(most.Load(), running.Add(1)))
			time.Sleep(25 * time.Second) // for longer than the TTL, too
			running.Add(-1)
			return nil
		}
		a, b, c := w.replicas("*/10 * * * * *", work)
		c.clock.Skew(-6 * time.Second) // a skipped tick comes due there when the run is over
		w.at(7 * time.Second)
		run(a, b, c)
		w.at(156 * time.Second)
		times := w.times()
		for tick := 10 * time.Second; tick <= 130*time.Second; tick += 30 * time.Second {
			assert.Equal(t, []int{1, 0, 0}, []int{times[tick], times[tick+10*time.Second], times[tick+20*time.Second]}, "from tick %v on", tick)
		}
		assert.EqualValues(t, 1, most.Load())
		for _, run := range w.ran()[:4] {
			for _, r := range []*replica{a, b} {
				if r.name == run.Replica {
					assert.GreaterOrEqual(t, r.count(scheduler.Missed, scheduler.Overlap), 2)
				}
			}
		}
	})
}

func TestTicksThatFellDueInTheRunOfADeadReplicaAreTakenOver(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var begun atomic.Pointer[replica]
		work := func(ctx context.Context, r *replica, _ scheduler.Run) error {
			if begun.CompareAndSwap(nil, r) {
				time.Sleep(9 * time.Second)
				r.host.Partition()
				<-ctx.Done()
			}
			return nil
		}
		a, b, c := w.replicas("*/10 * * * * *", work)
		run(a, b, c)
		w.at(29 * time.Second)
		dead := begun.Load()
		w.eachOnce(10*time.Second, 20*time.Second, 10*time.Second)
		assert.NotEqual(t, dead.name, w.ran()[1].Replica, "the tick at 0:20 came due while the lease of the dead one went on")
		dead.host.Heal()
	})
}

func TestAFunctionThatGoesOnWithoutItsLeaseStopsItsOwnReplicaOnly(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var first atomic.Pointer[replica]
		end := make(chan struct{})
		work := func(_ context.Context, r *replica, _ scheduler.Run) error {
			if first.CompareAndSwap(nil, r) {
				<-end
			}
			return nil
		}
		a, b, c := w.replicas("*/10 * * * * *", work, scheduler.WithTimeout(15*time.Second))
		run(a, b, c)
		w.at(119 * time.Second)
		stuck := first.Load()
		require.Equal(t, 1, w.by(stuck))
		times := w.times()
		// The timeout, a TTL and a little more after its start the lease is free again.
		for tick := 60 * time.Second; tick <= 110*time.Second; tick += 10 * time.Second {
			assert.Equal(t, 1, times[tick], "tick %v", tick)
		}
		assert.Positive(t, stuck.count(scheduler.Elsewhere), "it sees that the others run")
		close(end)
		synctest.Wait()
		assert.Equal(t, 1, stuck.count(scheduler.Failed, scheduler.LeaseEnded))
		assert.ErrorIs(t, stuck.last(scheduler.Failed).Err, redlock.ErrExtensionLimit)
	})
}

func TestARunThatExceedsItsTimeoutIsCancelled(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.replica("a")
		var cause error
		a.add("0/10 * * * *", func(ctx context.Context, _ *replica, _ scheduler.Run) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		}, scheduler.WithTimeout(9*time.Minute))
		run(a)
		w.at(19*time.Minute - time.Second)
		require.Len(t, w.ran(), 1)
		require.Zero(t, a.count(scheduler.Failed), "the lease is extended for as long as the run may take")
		w.at(19*time.Minute + time.Second)
		require.ErrorIs(t, cause, scheduler.ErrTimeout)
		e := a.last(scheduler.Failed)
		assert.Equal(t, scheduler.TimedOut, e.Reason)
		require.ErrorIs(t, e.Err, scheduler.ErrTimeout)
		require.ErrorIs(t, e.Err, context.DeadlineExceeded)
		assert.Equal(t, 9*time.Minute, e.Duration)
	})
}

func TestAFailureOrAPanicEndsTheRunAndNotTheJob(t *testing.T) {
	failure := errors.New("no paper")
	for _, test := range []struct {
		name    string
		f       func() error
		outcome scheduler.Outcome
		check   func(t *testing.T, err error)
	}{
		{"an error", func() error { return failure }, scheduler.Failed, func(t *testing.T, err error) {
			require.ErrorIs(t, err, failure)
		}},
		{"a panic", func() error { panic("no toner") }, scheduler.Panicked, func(t *testing.T, err error) {
			var p *scheduler.PanicError
			require.ErrorAs(t, err, &p)
			assert.Equal(t, "no toner", p.Value)
			assert.Contains(t, string(p.Stack), "TestAFailureOrAPanic")
			assert.ErrorContains(t, err, "no toner")
		}},
		{"a panic with an error", func() error { panic(failure) }, scheduler.Panicked, func(t *testing.T, err error) {
			require.ErrorIs(t, err, failure)
		}},
		{"Goexit", func() error { runtime.Goexit(); return nil }, scheduler.Panicked, func(t *testing.T, err error) {
			require.ErrorContains(t, err, "runtime.Goexit")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				a, b, c := w.replicas("* * * * * *", func(context.Context, *replica, scheduler.Run) error { return test.f() })
				run(a, b, c)
				w.at(20*time.Second + 500*time.Millisecond)
				w.eachOnce(time.Second, 20*time.Second, time.Second)
				ended := 0
				for _, r := range []*replica{a, b, c} {
					n := r.count(test.outcome)
					ended += n
					assert.Equal(t, 20-n, r.count(scheduler.Elsewhere))
					assert.Zero(t, r.count(scheduler.Interrupted), "the tick is completed")
					if n > 0 {
						test.check(t, r.last(test.outcome).Err)
					}
				}
				assert.Equal(t, 20, ended)
			})
		})
	}
}

func TestRunWaitsForItsRunsAndClaimsNothingNew(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.replica("a")
		var err error
		a.add("*/10 * * * * *", func(ctx context.Context, _ *replica, _ scheduler.Run) error {
			time.Sleep(25 * time.Second)
			err = ctx.Err()
			return nil
		})
		run(a)
		w.at(15 * time.Second)
		a.shutDown()
		require.Equal(t, 35*time.Second, time.Since(w.start).Truncate(time.Second))
		require.NoError(t, err, "its context goes on")
		assert.Equal(t, 1, a.count(scheduler.Ran))
		w.at(2 * time.Minute)
		require.Len(t, w.ran(), 1)
		status, inspected := a.locker.Inspect(t.Context(), "job/tick")
		require.NoError(t, inspected)
		assert.Empty(t, status.Holder, "the lease was released")

		run(a) // again
		w.at(131 * time.Second)
		require.Len(t, w.ran(), 2)
	})
}

func TestRunsThatOutlastTheDrainTimeoutAreCancelledAndWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.replica("a", scheduler.WithDrainTimeout(5*time.Second))
		var cause error
		a.add("*/10 * * * * *", func(ctx context.Context, _ *replica, _ scheduler.Run) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			time.Sleep(3 * time.Second)
			return ctx.Err()
		})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(15*time.Second, cancel)
		err := a.sched.Run(ctx)
		require.ErrorIs(t, err, scheduler.ErrDrainTimeout)
		require.ErrorContains(t, err, "tick")
		require.ErrorIs(t, cause, scheduler.ErrDrainTimeout)
		assert.Equal(t, 23*time.Second, time.Since(w.start).Truncate(time.Second))
		assert.Equal(t, 1, a.count(scheduler.Failed, scheduler.Drained))
		status, err := a.locker.Inspect(t.Context(), "job/tick")
		require.NoError(t, err)
		assert.Empty(t, status.Holder)
		assert.NotContains(t, string(status.State), `"open"`, "the tick is completed, with a failure")
	})
}

func TestRunReturnsWhenTheLockerIsClosed(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.replica("a")
		var cause error
		a.add("*/10 * * * * *", func(ctx context.Context, _ *replica, _ scheduler.Run) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil
		})
		time.AfterFunc(15*time.Second, func() { _ = a.locker.Close() })
		err := a.sched.Run(t.Context())
		require.ErrorIs(t, err, redlock.ErrClosed)
		require.ErrorIs(t, cause, redlock.ErrClosed)
		assert.Equal(t, 15*time.Second, time.Since(w.start).Truncate(time.Second), "at once")
	})
}

func TestASecondRunIsRefusedWhileTheFirstGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.replica("a")
		run(a)
		require.ErrorIs(t, a.sched.Run(t.Context()), scheduler.ErrRunning)
		a.shutDown()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, a.sched.Run(ended))
	})
}

func TestAJobMayBeAddedWhileRunRuns(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.replica("a")
		run(a)
		w.at(15 * time.Second)
		a.add("*/10 * * * * *", nil)
		w.at(31 * time.Second)
		require.Equal(t, map[time.Duration]int{20 * time.Second: 1, 30 * time.Second: 1}, w.times())
	})
}

func TestARunKnowsItsLeaseAndTheValuesOfRunsContext(t *testing.T) {
	type key struct{}
	bubble(t, func(t *testing.T, w *world) {
		a := w.replica("a")
		done := make(chan struct{})
		require.NoError(t, a.sched.Add("values", "@every 1s", func(ctx context.Context, run scheduler.Run) error {
			defer close(done)
			assert.Equal(t, "v", ctx.Value(key{}))
			lease, ok := redlock.LeaseFrom(ctx)
			assert.True(t, ok)
			assert.Equal(t, lease.Token(), run.Token)
			assert.Equal(t, "job/values", lease.Name())
			assert.Equal(t, "a", run.Replica)
			return nil
		}))
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "v"))
		ended := make(chan error)
		go func() { ended <- a.sched.Run(ctx) }()
		<-done
		cancel()
		require.NoError(t, <-ended)
	})
}

func TestAReplicaNeverHasTwoRunsOfOneJob(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.replica("a")
		end := make(chan struct{})
		a.add("*/10 * * * * *", func(context.Context, *replica, scheduler.Run) error {
			<-end // also when its lease has long ended
			return nil
		}, scheduler.WithTimeout(15*time.Second))
		run(a)
		w.at(99 * time.Second)
		require.Len(t, w.ran(), 1)
		close(end)
		w.at(111 * time.Second)
		w.eachOnce(100*time.Second, 110*time.Second, 10*time.Second)
	})
}

// The nodes are away for two seconds when the run ends; its lease lasts.
func TestTheEndOfARunIsRecordedForAsLongAsItsLeaseLasts(t *testing.T) {
	for _, overlap := range []scheduler.OverlapPolicy{scheduler.OverlapSkip, scheduler.OverlapAllow} {
		bubble(t, func(t *testing.T, w *world) {
			work := func(_ context.Context, _ *replica, run scheduler.Run) error {
				if run.Scheduled.Minute() == 1 {
					w.fleet.Partition()
					time.AfterFunc(3*time.Second, func() { w.fleet.Heal() })
				}
				return nil
			}
			a, b, c := w.replicas("0 * * * * *", work, scheduler.WithOverlap(overlap), scheduler.WithAtLeastOnce(3))
			run(a, b, c)
			w.at(2*time.Minute + 30*time.Second)
			w.eachOnce(time.Minute, 2*time.Minute, time.Minute)
			for _, r := range []*replica{a, b, c} {
				assert.Zero(t, r.count(scheduler.Interrupted)+r.count(scheduler.Unclaimed))
			}
		})
	}
}
