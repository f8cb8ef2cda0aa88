package scheduler_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/scheduler"
)

func TestThreeReplicasRunEachTickOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b, c := w.replicas("* * * * * *", nil)
		run(a, b, c)
		w.at(100*time.Second + 500*time.Millisecond)
		w.eachOnce(time.Second, 100*time.Second, time.Second)
		require.Len(t, w.ran(), 100)
		for _, r := range []*replica{a, b, c} {
			assert.Equal(t, 100, r.count(scheduler.Ran)+r.count(scheduler.Elsewhere), "each replica saw each tick settled: %v", r.events)
			assert.Zero(t, r.count(scheduler.Missed))
		}
		for _, run := range w.ran() {
			assert.Less(t, run.at.Sub(run.Scheduled), 200*time.Millisecond, "runs start on time")
			assert.Equal(t, "tick", run.Job)
			assert.Equal(t, 1, run.Attempt)
			assert.Equal(t, time.UTC, run.Scheduled.Location())
		}
	})
}

func TestClocksThatDisagreeRunEachTickOnce(t *testing.T) {
	for _, skew := range []time.Duration{10 * time.Second, 2 * time.Minute} {
		t.Run(skew.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.at(skew) // so that no clock shows a time before the start
				a, b, c := w.replicas("*/10 * * * * *", nil)
				a.clock.Skew(skew)
				c.clock.Skew(-skew)
				run(a, b, c)
				w.at(4 * skew)
				// The first tick is c's: its clock is the last to get there.
				w.eachOnce(10*time.Second, 5*skew-10*time.Second, 10*time.Second)
				assert.Zero(t, a.count(scheduler.Unclaimed)+b.count(scheduler.Unclaimed)+c.count(scheduler.Unclaimed))
				assert.Zero(t, c.count(scheduler.Missed), "to the others' clocks, the job is older than they are")
				a.shutDown()
				w.at(6 * skew)
				w.eachOnce(10*time.Second, 6*skew-10*time.Second, 10*time.Second)
				c.clock.Skew(0)
				w.at(7 * skew)
				w.eachOnce(10*time.Second, 7*skew-10*time.Second, 10*time.Second)
			})
		})
	}
}

// A register that knows only its latest tick would keep the fleet from running any for a year.
func TestAReplicaWhoseClockIsAYearAheadDoesNotStopTheOthers(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b, c := w.replicas("*/5 * * * * *", nil)
		a.clock.Skew(365 * 24 * time.Hour)
		run(a, b, c)
		w.at(61 * time.Second)
		w.eachOnce(5*time.Second, 60*time.Second, 5*time.Second)
	})
}

func TestAReplicaThatIsStartedLateDoesNotRunWhatWasRun(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		work := func(context.Context, *replica, scheduler.Run) error { time.Sleep(20 * time.Second); return nil }
		a, b, c := w.replicas("0 * * * * *", work)
		run(a)
		w.at(70 * time.Second) // in mid-run
		run(b)
		w.at(90 * time.Second) // after the run
		c.clock.Skew(-time.Minute)
		run(c)
		w.at(10*time.Minute + 30*time.Second)
		w.eachOnce(time.Minute, 10*time.Minute, time.Minute)
		require.Len(t, w.ran(), 10)
		assert.Positive(t, c.count(scheduler.Elsewhere))
	})
}

func TestAReplicaThatIsCutOffInARunIsNotReplacedForThatTick(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var begun atomic.Pointer[replica]
		var cause error
		work := func(ctx context.Context, r *replica, _ scheduler.Run) error {
			if !begun.CompareAndSwap(nil, r) {
				return nil
			}
			r.host.Partition()
			<-ctx.Done()
			cause = context.Cause(ctx)
			return cause
		}
		a, b, c := w.replicas("*/20 * * * * *", work)
		run(a, b, c)
		w.at(59 * time.Second)
		first := begun.Load()
		require.Equal(t, map[time.Duration]int{20 * time.Second: 1, 40 * time.Second: 1}, w.times())
		require.ErrorIs(t, cause, redlock.ErrLeaseExpired)
		assert.Equal(t, scheduler.LeaseEnded, first.last(scheduler.Failed).Reason)
		second := w.ran()[1]
		assert.NotEqual(t, first.name, second.Replica)
		interrupted := 0
		for _, r := range []*replica{a, b, c} {
			if n := r.count(scheduler.Interrupted); n > 0 {
				interrupted += n
				e := r.last(scheduler.Interrupted)
				assert.Equal(t, w.start.Add(20*time.Second), e.Scheduled.Local())
				assert.Equal(t, first.name, e.Replica)
				assert.Equal(t, w.ran()[0].Token, e.Token)
			}
		}
		assert.Equal(t, 1, interrupted, "the next holder reports it, once")
		first.host.Heal()
		w.at(90 * time.Second)
		w.eachOnce(20*time.Second, 80*time.Second, 20*time.Second)
	})
}

func TestATickWhoseWinnerCrashesBeforeTheClaimIsRunByAnother(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var first atomic.Pointer[replica]
		a, b, c := w.replicas("0 * * * * *", nil)
		run(a, b, c)
		w.at(30 * time.Second)
		beforeSaves(t, func(r *replica, _ int) {
			if first.CompareAndSwap(nil, r) {
				r.host.Partition()
			}
		})
		w.at(80 * time.Second)
		winner := first.Load()
		require.NotNil(t, winner)
		w.eachOnce(time.Minute, time.Minute, time.Minute)
		assert.NotEqual(t, winner.name, w.ran()[0].Replica)
		assert.Less(t, w.ran()[0].at.Sub(w.start), time.Minute+redlock.DefaultTTL+2*time.Second, "soon after the lease of the winner has ended")
		winner.host.Heal()
		w.at(130 * time.Second)
		w.eachOnce(time.Minute, 2*time.Minute, time.Minute)
	})
}

func TestARunDoesNotBeginUnlessAQuorumHasTheClaim(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.replica("a")
		a.add("0 * * * * *", nil)
		run(a)
		w.at(30 * time.Second)
		end := beforeSaves(t, func(*replica, int) { w.fleet.Partition(1, 2) })
		w.at(119 * time.Second)
		require.Empty(t, w.ran())
		w.at(121 * time.Second)
		assert.Equal(t, 1, a.count(scheduler.Unclaimed, scheduler.NoQuorum), "%v", a.events)
		end()
		w.fleet.Heal()
	})
}

// The claim reached one node only, so no run began. The replica knows that it did not, and
// claims again when the nodes are back.
func TestAClaimThatAMinorityHasDoesNotCostTheTick(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.replica("a")
		a.add("0 * * * * *", nil)
		run(a)
		w.at(30 * time.Second)
		end := beforeSaves(t, func(_ *replica, node int) {
			if node != 0 {
				w.fleet.Partition(node)
			}
		})
		w.at(75 * time.Second)
		require.Empty(t, w.ran())
		state, ok := w.fleet.Get(0, "{quorate:job/tick}:fence")
		require.True(t, ok)
		require.Contains(t, state, `"tick":946684860000`)
		end()
		w.fleet.Heal()
		w.at(119 * time.Second)
		w.eachOnce(time.Minute, time.Minute, time.Minute)
		assert.Zero(t, a.count(scheduler.Interrupted))
	})
}

func TestAReplicaThatPausesBeforeTheClaimCannotClaimAfterwards(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		work := func(context.Context, *replica, scheduler.Run) error { return nil }
		var paused atomic.Pointer[replica]
		a, b, c := w.replicas("0 * * * * *", work)
		run(a, b, c)
		w.at(30 * time.Second)
		beforeSaves(t, func(r *replica, _ int) {
			paused.CompareAndSwap(nil, r)
			if paused.Load() == r && time.Since(w.start) < 90*time.Second {
				time.Sleep(30 * time.Second)
			}
		})
		w.at(119 * time.Second)
		w.eachOnce(time.Minute, time.Minute, time.Minute)
		assert.NotEqual(t, paused.Load().name, w.ran()[0].Replica)
		w.at(190 * time.Second)
		w.eachOnce(time.Minute, 3*time.Minute, time.Minute)
	})
}

func TestOneNodeEmptiedOrHungCostsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b, c := w.replicas("* * * * * *", nil)
		c.clock.Skew(-10 * time.Second)
		run(a, b, c)
		w.at(20*time.Second + 500*time.Millisecond)
		w.fleet.Hang(0)
		w.at(40*time.Second + 500*time.Millisecond)
		w.fleet.Resume(0)
		w.at(41 * time.Second)
		w.fleet.RestartEmpty(1)
		w.at(60*time.Second + 500*time.Millisecond)
		w.fleet.RestartEmpty(2)
		w.at(80*time.Second + 500*time.Millisecond)
		w.eachOnce(time.Second, 80*time.Second, time.Second)
	})
}

func TestATickIsRunWhenTheNodesComeBackInTime(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b, c := w.replicas("0 */5 * * * *", nil, scheduler.WithMisfire(scheduler.MisfireSkip()))
		run(a, b, c)
		w.at(299 * time.Second)
		w.fleet.Partition()
		w.at(345 * time.Second)
		w.fleet.Heal()
		w.at(360 * time.Second)
		w.eachOnce(5*time.Minute, 5*time.Minute, 5*time.Minute)
		w.at(599 * time.Second)
		w.fleet.Partition()
		w.at(662 * time.Second) // a minute is the default deadline
		w.fleet.Heal()
		w.at(14 * time.Minute)
		require.Len(t, w.ran(), 1)
		for _, r := range []*replica{a, b, c} {
			assert.Equal(t, 1, r.count(scheduler.Unclaimed, scheduler.NoQuorum), "%s: %v", r.name, r.events)
		}
		assert.Equal(t, 1, a.count(scheduler.Missed)+b.count(scheduler.Missed)+c.count(scheduler.Missed), "settled once, when the nodes are back")
	})
}

// Nobody has a majority: two nodes are held by two others who never get it.
func TestASplitVoteDoesNotCostTheTick(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b, c := w.replicas("*/30 * * * * *", nil)
		run(a, b, c)
		w.at(29 * time.Second)
		for node, client := range w.fleet.Host("rival").Clients()[:2] {
			require.NoError(t, client.SetNX(t.Context(), "quorate:job/tick", "rival"+string(rune('0'+node)), 10*time.Second).Err())
		}
		w.at(38 * time.Second)
		require.Empty(t, w.ran())
		w.at(41 * time.Second)
		w.eachOnce(30*time.Second, 30*time.Second, 30*time.Second)
	})
}

func TestATickThatSomebodyElseHoldsIsMissed(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.replica("a")
		a.add("*/10 * * * * *", nil, scheduler.WithStartDeadline(5*time.Second))
		other := w.replica("other")
		run(a)
		w.at(5 * time.Second)
		lease, err := other.locker.Acquire(t.Context(), "job/tick", redlock.WithAutoExtend(true))
		require.NoError(t, err)
		w.at(21 * time.Second)
		require.NoError(t, lease.Release(t.Context()))
		w.at(29 * time.Second)
		require.Equal(t, map[time.Duration]int{20 * time.Second: 1}, w.times())
		assert.Equal(t, 1, a.count(scheduler.Unclaimed, scheduler.Held))
		require.ErrorIs(t, a.last(scheduler.Unclaimed).Err, redlock.ErrTaken)
		assert.Equal(t, 1, a.count(scheduler.Missed, scheduler.Held))
	})
}

func TestAnUnreadableRegisterStopsTheJobAndIsLeftAlone(t *testing.T) {
	for name, state := range map[string]string{"foreign": "hello", "of a newer version": `{"v":3}`} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				a, b, c := w.replicas("*/10 * * * * *", nil, scheduler.WithStartDeadline(5*time.Second))
				lease, err := a.locker.Acquire(t.Context(), "job/tick")
				require.NoError(t, err)
				require.NoError(t, lease.Save(t.Context(), []byte(state)))
				require.NoError(t, lease.Release(t.Context()))
				run(a, b, c)
				w.at(21 * time.Second)
				require.Empty(t, w.ran())
				for _, r := range []*replica{a, b, c} {
					assert.Equal(t, 1, r.count(scheduler.Unclaimed, scheduler.Unreadable))
					require.ErrorIs(t, r.last(scheduler.Unclaimed).Err, scheduler.ErrRegister)
				}
				synctest.Wait()
				status, err := a.locker.Inspect(t.Context(), "job/tick")
				require.NoError(t, err)
				assert.Equal(t, state, string(status.State))
			})
		})
	}
}

func TestALeaseThatIsWonTooLateIsGivenBack(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.replica("a")
		a.add("*/10 * * * * *", nil, scheduler.WithStartDeadline(100*time.Millisecond), scheduler.WithMisfire(scheduler.MisfireSkip()))
		run(a)
		w.at(11 * time.Second)
		require.Len(t, w.ran(), 1)
		for node := range w.fleet.Len() {
			w.fleet.Delay(node, 150*time.Millisecond) // the node timeout is 250
		}
		w.at(25 * time.Second)
		require.Len(t, w.ran(), 1)
		assert.Equal(t, 1, a.count(scheduler.Missed, scheduler.Late))
		status, err := a.locker.Inspect(t.Context(), "job/tick")
		require.NoError(t, err)
		assert.Empty(t, status.Holder)
	})
}

func TestAnInterruptedRunIsReportedOnceByWhoeverComesNext(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.at(50 * time.Second)
		a, b, c := w.replicas("0 * * * * *", func(ctx context.Context, r *replica, _ scheduler.Run) error {
			r.host.Partition()
			<-ctx.Done()
			return ctx.Err()
		})
		b.clock.Skew(-20 * time.Second)
		c.clock.Skew(-30 * time.Second)
		run(a, b, c)
		w.at(79 * time.Second)
		b.host.Partition() // so that it reads the register before it asks for the lease again
		w.at(83 * time.Second)
		b.host.Heal()
		w.at(100 * time.Second)
		require.Len(t, w.ran(), 1)
		assert.Equal(t, 1, b.count(scheduler.Interrupted))
		assert.Equal(t, "a", b.last(scheduler.Interrupted).Replica)
		assert.Zero(t, c.count(scheduler.Interrupted))
		assert.Equal(t, 1, c.count(scheduler.Elsewhere))
		a.host.Heal()
	})
}

func TestAClaimIsConfirmedUnderTheSameLeaseWhenTheNodesComeBack(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.replica("a") // alone: a rival's attempt may have a node refuse the claim for good
		a.add("0 * * * * *", nil)
		run(a)
		w.at(30 * time.Second)
		var once sync.Once
		beforeSaves(t, func(*replica, int) {
			once.Do(func() {
				w.fleet.Partition()
				time.AfterFunc(3*time.Second, func() { w.fleet.Heal() })
			})
		})
		w.at(119 * time.Second)
		w.eachOnce(time.Minute, time.Minute, time.Minute)
		assert.Less(t, int64(w.ran()[0].Token), w.start.Add(60300*time.Millisecond).UnixMicro(), "acquired before")
		assert.Greater(t, w.ran()[0].at.Sub(w.start), 63*time.Second, "confirmed after")
	})
}
