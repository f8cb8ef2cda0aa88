package scheduler_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/scheduler"
)

func seconds(n ...int) []time.Duration {
	var d []time.Duration
	for _, s := range n {
		d = append(d, time.Duration(s)*time.Second)
	}
	return d
}

func TestTheFirstTickThatComesDueDuringARunIsQueued(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var running, most atomic.Int32
		work := func(_ context.Context, _ *replica, run scheduler.Run) error {
			most.Store(max(most.Load(), running.Add(1)))
			if run.Scheduled.Second() == 10 {
				time.Sleep(35 * time.Second)
			}
			running.Add(-1)
			return nil
		}
		a, b, c := w.replicas("*/10 0 * * * *", work, scheduler.WithOverlap(scheduler.OverlapQueue), scheduler.WithStartDeadline(5*time.Second))
		w.at(5 * time.Second)
		run(a, b, c)
		w.at(59 * time.Second)
		assert.Equal(t, seconds(10, 20, 50), w.scheduled(), "20 waited, 30 and 40 were too many")
		assert.Equal(t, 45*time.Second, w.ran()[1].at.Sub(w.start).Truncate(time.Second), "as soon as the run had ended")
		assert.EqualValues(t, 1, most.Load())
		assert.Equal(t, 2, a.count(scheduler.Missed, scheduler.Overlap)+b.count(scheduler.Missed, scheduler.Overlap)+c.count(scheduler.Missed, scheduler.Overlap))
		w.times()
	})
}

// quartz #1070: the recovery of a run overlapped the next one.
func TestRunsOverlapOnlyWhereThatIsAllowed(t *testing.T) {
	for _, policy := range []scheduler.OverlapPolicy{scheduler.OverlapSkip, scheduler.OverlapQueue, scheduler.OverlapAllow} {
		bubble(t, func(t *testing.T, w *world) {
			var running, most atomic.Int32
			var first atomic.Pointer[replica]
			work := func(ctx context.Context, r *replica, _ scheduler.Run) error {
				if first.CompareAndSwap(nil, r) {
					r.host.Partition() // it dies; its function does not get to hear of it
					<-ctx.Done()
					return nil
				}
				most.Store(max(most.Load(), running.Add(1)))
				time.Sleep(25 * time.Second)
				running.Add(-1)
				return nil
			}
			a, b, c := w.replicas("*/10 * * * * *", work, scheduler.WithOverlap(policy), scheduler.WithAtLeastOnce(5))
			run(a, b, c)
			w.at(125 * time.Second)
			if policy == scheduler.OverlapAllow {
				assert.GreaterOrEqual(t, most.Load(), int32(3))
			} else {
				assert.EqualValues(t, 1, most.Load())
			}
			first.Load().host.Heal()
		})
	}
}

func TestOverlappingRunsAreEachRunOnceAndHaveLeasesOfTheirOwn(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		work := func(ctx context.Context, _ *replica, run scheduler.Run) error {
			lease, ok := redlock.LeaseFrom(ctx)
			assert.True(t, ok)
			assert.Contains(t, lease.Name(), "run/tick/")
			time.Sleep(25 * time.Second)
			return ctx.Err()
		}
		a, b, c := w.replicas("*/10 * * * * *", work, scheduler.WithOverlap(scheduler.OverlapAllow))
		run(a, b, c)
		w.at(114 * time.Second)
		w.eachOnce(10*time.Second, 110*time.Second, 10*time.Second)
		for _, r := range []*replica{a, b, c} {
			assert.Zero(t, r.count(scheduler.Missed)+r.count(scheduler.Unclaimed)+r.count(scheduler.Interrupted)+r.count(scheduler.Failed))
		}
		status, err := a.sched.Status(t.Context(), "tick")
		require.NoError(t, err)
		running := 0
		for _, r := range status.History {
			if r.Outcome == scheduler.Running {
				running++
			}
		}
		assert.Equal(t, 3, running, "%v", status.History)
	})
}

func TestAReplicaHasNoMoreOverlappingRunsThanItMay(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var most atomic.Int32
		var running [3]atomic.Int32
		work := func(_ context.Context, r *replica, _ scheduler.Run) error {
			n := &running[r.name[0]-'a']
			if now := n.Add(1); now > most.Load() {
				most.Store(now)
			}
			time.Sleep(25 * time.Second)
			n.Add(-1)
			return nil
		}
		a, b, c := w.replicas("*/10 * * * * *", work, scheduler.WithOverlap(scheduler.OverlapAllow), scheduler.WithConcurrency(1))
		run(a, b, c)
		w.at(115 * time.Second)
		assert.EqualValues(t, 1, most.Load())
		w.eachOnce(10*time.Second, 110*time.Second, 10*time.Second)
	})
}

// db-scheduler #402 (a frozen holder revives), ShedLock #6 (a late node runs a finished job again),
// #1587 (a restart left a job locked for hours).
func TestARunWhoseReplicaDiesIsTakenOver(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var first atomic.Pointer[replica]
		work := func(ctx context.Context, r *replica, _ scheduler.Run) error {
			if first.CompareAndSwap(nil, r) {
				time.Sleep(time.Second)
				r.host.Partition()
				<-ctx.Done()
				return errors.New("cut off")
			}
			return nil
		}
		a, b, c := w.replicas("0 * * * * *", work, scheduler.WithAtLeastOnce(3))
		run(a, b, c)
		w.at(61*time.Second + redlock.DefaultTTL + 500*time.Millisecond)
		require.Len(t, w.ran(), 2)
		before, after := w.ran()[0], w.ran()[1]
		assert.Equal(t, before.Scheduled, after.Scheduled)
		assert.Equal(t, []int{1, 2}, []int{before.Attempt, after.Attempt})
		assert.Greater(t, after.Token, before.Token)
		assert.NotEqual(t, before.Replica, after.Replica)
		first.Load().host.Heal()
		w.at(119 * time.Second)
		require.Len(t, w.ran(), 2, "who revives does not run it again")
		w.at(125 * time.Second)
		require.Len(t, w.ran(), 3)
		assert.Equal(t, 1, w.ran()[2].Attempt)
		for _, r := range []*replica{a, b, c} {
			assert.Zero(t, r.count(scheduler.Interrupted)+r.count(scheduler.Missed)+r.count(scheduler.Unclaimed))
		}
	})
}

func TestATickIsTakenOverNoMoreOftenThanItMay(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		work := func(ctx context.Context, r *replica, run scheduler.Run) error {
			if run.Scheduled.Minute() > 4 {
				return nil
			}
			r.host.Partition()
			<-ctx.Done()
			r.host.Heal()
			return nil
		}
		a, b, c := w.replicas("0 */4 * * * *", work, scheduler.WithAtLeastOnce(3))
		run(a, b, c)
		w.at(7 * time.Minute)
		var attempts []int
		for _, run := range w.ran() {
			attempts = append(attempts, run.Attempt)
		}
		assert.Equal(t, []int{1, 2, 3}, attempts)
		w.at(9 * time.Minute)
		n := 0
		for _, r := range []*replica{a, b, c} {
			n += r.count(scheduler.Interrupted, scheduler.Attempts)
		}
		assert.Equal(t, 1, n)
		assert.Len(t, w.ran(), 4, "the next tick is run")
	})
}

func TestARunThatAShutdownCutsShortIsTakenOver(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		work := func(ctx context.Context, _ *replica, run scheduler.Run) error {
			if run.Attempt > 1 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		a, b := w.replica("a", scheduler.WithDrainTimeout(time.Second)), w.replica("b")
		a.add("0 * * * * *", work, scheduler.WithAtLeastOnce(2))
		b.add("0 * * * * *", work, scheduler.WithAtLeastOnce(2))
		run(a)
		w.at(65 * time.Second)
		run(b)
		a.stop()
		w.at(65*time.Second + redlock.DefaultTTL + time.Second)
		require.Error(t, <-a.ended)
		a.ended = nil
		require.Len(t, w.ran(), 2)
		assert.Equal(t, 2, w.ran()[1].Attempt)
		assert.Equal(t, 1, b.count(scheduler.Ran))
	})
}

// A function that fails has been run; only WithRetry tries again.
func TestARunThatFailedIsCompleted(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		work := func(context.Context, *replica, scheduler.Run) error { return errors.New("no paper") }
		a, b, c := w.replicas("0 * * * * *", work, scheduler.WithAtLeastOnce(5))
		run(a, b, c)
		w.at(119 * time.Second)
		require.Len(t, w.ran(), 1)
	})
}

func TestRetriesStayInTheRun(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		final := errors.New("no such customer")
		retry := scheduler.WithRetry(func() backoff.BackOff { return backoff.WithMaxRetries(backoff.NewConstantBackOff(time.Second), 4) })
		for _, test := range []struct {
			name  string
			fn    func(run scheduler.Run) error
			calls int
			want  scheduler.Outcome
		}{
			{"until it works", func(run scheduler.Run) error {
				if run.Retry < 2 {
					return errors.New("not yet")
				}
				return nil
			}, 3, scheduler.Ran},
			{"as often as it may", func(scheduler.Run) error { return errors.New("never") }, 5, scheduler.Failed},
			{"not after a permanent error", func(scheduler.Run) error { return backoff.Permanent(final) }, 1, scheduler.Failed},
			{"not after a panic", func(scheduler.Run) error { panic("no toner") }, 1, scheduler.Panicked},
		} {
			r := w.replica("a")
			calls, tokens := 0, map[redlock.Token]bool{}
			start := time.Now()
			require.NoError(t, r.sched.Add(test.name, "@every 60s", func(_ context.Context, run scheduler.Run) error {
				assert.Equal(t, calls, run.Retry)
				assert.Equal(t, 1, run.Attempt)
				calls++
				tokens[run.Token] = true
				return test.fn(run)
			}, retry))
			run(r)
			time.Sleep(70 * time.Second)
			synctest.Wait()
			r.shutDown()
			assert.Equal(t, test.calls, calls, test.name)
			assert.Len(t, tokens, 1, "one lease")
			require.Equal(t, 1, r.count(test.want), "%s: %v, after %v", test.name, r.events, time.Since(start))
		}
	})
}

func TestRetriesEndWithTheTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.replica("a")
		r.add("@every 60s", func(context.Context, *replica, scheduler.Run) error { return errors.New("no paper") },
			scheduler.WithTimeout(5*time.Second), scheduler.WithRetry(func() backoff.BackOff { return backoff.NewConstantBackOff(time.Second) }))
		run(r)
		w.at(70 * time.Second)
		require.InDelta(t, 5, len(w.ran()), 1)
		e := r.last(scheduler.Failed)
		assert.Equal(t, scheduler.TimedOut, e.Reason)
		assert.ErrorContains(t, e.Err, "no paper")
	})
}

// In a run with a lease of its own, whose end is written under the job's.
func TestAPanicBehindTheEndOfTheLeaseDoesNotEndTheRunOfTheSuccessor(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		work := func(ctx context.Context, r *replica, run scheduler.Run) error {
			if run.Attempt == 1 {
				r.host.Partition()
				<-ctx.Done()
				time.Sleep(5 * time.Second)
				r.host.Heal()
				time.Sleep(5 * time.Second) // the nodes are trusted again
				panic("no toner")
			}
			time.Sleep(30 * time.Second)
			return nil
		}
		a, b, c := w.replicas("@yearly", work, scheduler.WithOverlap(scheduler.OverlapAllow), scheduler.WithAtLeastOnce(2))
		run(a, b, c)
		w.at(time.Second)
		require.NoError(t, w.operator().Trigger(t.Context(), "tick"))
		w.at(30 * time.Second)
		require.Len(t, w.ran(), 2)
		require.Equal(t, 1, a.count(scheduler.Panicked)+b.count(scheduler.Panicked)+c.count(scheduler.Panicked))
		history, err := w.operator().History(t.Context(), "tick")
		require.NoError(t, err)
		last := history[len(history)-1]
		assert.Equal(t, scheduler.Running, last.Outcome, "%v", history)
		assert.Equal(t, 2, last.Attempt)
	})
}

// However long a run takes: its replica sees to the ticks that it overlaps, and the others neither
// raise an alarm nor ask again and again.
func TestALongRunIsNoAlarmAndCostsTheOthersLittle(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		work := func(_ context.Context, _ *replica, run scheduler.Run) error {
			if run.Scheduled.Minute() == 1 {
				time.Sleep(10 * time.Minute)
			}
			return nil
		}
		a, b, c := w.replicas("0 * * * * *", work)
		run(a, b, c)
		w.at(2 * time.Minute)
		before := w.fleet.Commands(0)
		w.at(10 * time.Minute)
		// In 8 minutes: 480 s of an extension each 8/3 s, three replicas that look at the bell about
		// once a second, and two that look at the run when its lease would end, and at each tick.
		assert.Less(t, w.fleet.Commands(0)-before, 480*3/8+3*2*480+2*480/2+500)
		w.at(11*time.Minute + 30*time.Second)
		assert.Equal(t, minutes(1), w.scheduled()[:1])
		overlapped := 0
		for _, r := range []*replica{a, b, c} {
			assert.Zero(t, r.count(scheduler.Unclaimed), "%v", r.events)
			overlapped += r.count(scheduler.Missed, scheduler.Overlap)
		}
		assert.GreaterOrEqual(t, overlapped, 9)
		for _, r := range []*replica{a, b, c} {
			assert.GreaterOrEqual(t, r.count(scheduler.Elsewhere)+r.count(scheduler.Ran)+r.count(scheduler.Missed), 9, "each has seen them all")
		}
	})
}

func TestATickThatIsQueuedIsNoAlarm(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		work := func(_ context.Context, _ *replica, run scheduler.Run) error {
			if run.Scheduled.Minute() == 1 {
				time.Sleep(170 * time.Second)
			}
			return nil
		}
		a, b, c := w.replicas("0 * * * * *", work, scheduler.WithOverlap(scheduler.OverlapQueue))
		run(a, b, c)
		w.at(5*time.Minute + 30*time.Second)
		assert.Equal(t, minutes(1, 2, 4, 5), w.scheduled())
		for _, r := range []*replica{a, b, c} {
			assert.Zero(t, r.count(scheduler.Unclaimed), "%s: %v", r.name, r.events)
		}
	})
}

func TestATickThatWaitsForATriggeredRunIsNoAlarm(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		work := func(_ context.Context, _ *replica, run scheduler.Run) error {
			if run.Kind == scheduler.Triggered {
				time.Sleep(3 * time.Minute)
			}
			return nil
		}
		a, b, c := w.replicas("0 */5 * * * *", work)
		run(a, b, c)
		w.at(4 * time.Minute)
		require.NoError(t, w.operator().Trigger(t.Context(), "tick"))
		w.at(8 * time.Minute)
		require.Len(t, w.ran(), 2)
		for _, r := range []*replica{a, b, c} {
			assert.Zero(t, r.count(scheduler.Unclaimed), "%s: %v", r.name, r.events)
		}
	})
}

// A rolling deployment that changes the policy: runs with leases of their own go on, and are neither
// taken over nor reported as interrupted.
func TestRunsThatOverlapAreLeftAloneByReplicasThatDoNotAllowIt(t *testing.T) {
	for _, attempts := range []int{1, 3} {
		bubble(t, func(t *testing.T, w *world) {
			work := func(_ context.Context, r *replica, _ scheduler.Run) error {
				if r.name == "a" {
					time.Sleep(100 * time.Second)
				}
				return nil
			}
			a, b := w.replica("a", scheduler.WithDrainTimeout(5*time.Minute)), w.replica("b")
			a.add("0 * * * * *", work, scheduler.WithOverlap(scheduler.OverlapAllow), scheduler.WithAtLeastOnce(attempts))
			b.add("0 * * * * *", work, scheduler.WithAtLeastOnce(attempts))
			run(a)
			w.at(70 * time.Second)
			run(b)
			w.at(80 * time.Second)
			a.stop() // it drains, longer than its run takes
			w.at(4 * time.Minute)
			assert.Zero(t, b.count(scheduler.Interrupted), "%v", b.events)
			for _, run := range w.ran() {
				assert.Equal(t, 1, run.Attempt)
			}
			w.eachOnce(time.Minute, time.Minute, time.Minute)
			w.eachOnce(3*time.Minute, 3*time.Minute, time.Minute)
			if err := <-a.ended; err != nil {
				require.ErrorIs(t, err, scheduler.ErrDrainTimeout)
			}
			a.ended = nil
		})
	}
}
