package scheduler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/scheduler"
)

func TestAMachineThatSleptRunsNeitherABacklogNorATickTwice(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.replica("a")
		a.add("*/5 * * * * *", nil)
		run(a)
		w.at(16 * time.Second) // three ticks
		require.Len(t, w.ran(), 3)
		a.clock.Suspend(100 * time.Second) // its clock shows 1:56
		w.at(17*time.Second + 500*time.Millisecond)
		require.Len(t, w.ran(), 4, "the newest tick that was slept through is in time, and run")
		assert.Equal(t, w.start.Add(115*time.Second), w.ran()[3].Scheduled.Local())
		assert.Equal(t, 19, a.count(scheduler.Missed, scheduler.Late), "from 0:20 to 1:50")
		assert.Equal(t, w.start.Add(20*time.Second), a.last(scheduler.Missed).Scheduled.Local(), "the first of them")
		w.at(41 * time.Second) // 2:21
		require.Len(t, w.ran(), 9)
		w.times()
	})
}

func TestATickThatWasSleptThroughForLongerThanItsDeadlineIsMissed(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.replica("a")
		a.add("0 * * * *", nil, scheduler.WithStartDeadline(30*time.Second), scheduler.WithMisfire(scheduler.MisfireSkip()))
		run(a)
		w.at(time.Minute)
		a.clock.Suspend(time.Hour - 40*time.Second) // shows 1:00:20
		w.at(62 * time.Second)
		require.Len(t, w.ran(), 1)
		a.clock.Suspend(time.Hour + 10*time.Second) // shows 2:00:32
		w.at(64 * time.Second)
		require.Len(t, w.ran(), 1)
		assert.Equal(t, 1, a.count(scheduler.Missed, scheduler.Late))
	})
}

func TestAClockThatIsSetWhileTheLoopWaitsIsSeenWithinASecond(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.replica("a")
		a.add("0 0 * * *", nil)
		run(a)
		w.at(time.Minute)
		a.clock.Skew(24*time.Hour - 2*time.Minute) // shows 23:59
		w.at(121 * time.Second)
		require.Len(t, w.ran(), 1)
		assert.Less(t, w.ran()[0].at.Sub(w.start), 121*time.Second)
	})
}

func TestAClockThatIsSetBackRunsNothingTwiceAndLosesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.replica("a")
		a.add("* * * * * *", nil)
		run(a)
		w.at(10*time.Second + 500*time.Millisecond)
		a.clock.Skew(time.Hour) // by mistake: the clock shows 1:00:10
		w.at(20*time.Second + 500*time.Millisecond)
		require.Len(t, w.ran(), 20)
		a.clock.Skew(0) // 0:00:20, and put right
		w.at(30*time.Second + 500*time.Millisecond)
		w.eachOnce(21*time.Second, 30*time.Second, time.Second)
		a.clock.Skew(-20 * time.Second) // 0:00:10: two ticks come due which nobody has run
		w.at(45*time.Second + 500*time.Millisecond)
		w.eachOnce(time.Second, 30*time.Second, time.Second)
		require.Len(t, w.ran(), 40, "ten of them at 1:00")
	})
}

func TestIntervalsAgreeOnAllReplicas(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b, c := w.replicas("@every 7s", nil)
		run(a)
		w.at(1700 * time.Millisecond)
		run(b)
		w.at(4100 * time.Millisecond)
		run(c)
		w.at(71 * time.Second)
		var ticks []int64
		for _, run := range w.ran() {
			assert.Zero(t, run.Scheduled.UnixNano()%int64(7*time.Second), "counted from the epoch: %v", run.Scheduled)
			ticks = append(ticks, run.Scheduled.Unix())
		}
		w.times()
		require.GreaterOrEqual(t, len(ticks), 10)
		for i := range ticks[1:] {
			assert.Equal(t, ticks[i]+7, ticks[i+1])
		}
		assert.GreaterOrEqual(t, c.count(scheduler.Ran)+c.count(scheduler.Elsewhere), 9)
	})
}

// robfig/cron #541: it leaves a job at 02:00 out when clocks go forward, and runs it twice when they
// go back. temporal #8205: who wants another policy can have it.
func TestADailyJobRunsOnceOnTheDaysWhenClocksAreChanged(t *testing.T) {
	type policy struct {
		gap  scheduler.Gap
		fold scheduler.Fold
	}
	def := policy{}
	gap, fold := time.Date(2000, 3, 26, 0, 29, 0, 0, time.UTC), time.Date(2000, 10, 29, 0, 29, 0, 0, time.UTC)
	for _, test := range []struct {
		name   string
		day    time.Time
		policy policy
		want   []string
		missed int
	}{
		{"gap", gap, def, []string{"03:00 CEST"}, 0},
		{"gap, left out", gap, policy{gap: scheduler.GapSkip}, nil, 1},
		{"fold", fold, def, []string{"02:30 CEST"}, 1},
		{"fold, twice", fold, policy{fold: scheduler.FoldTwice}, []string{"02:30 CEST", "02:30 CET"}, 0},
		{"ordinary", time.Date(2000, 6, 1, 0, 29, 0, 0, time.UTC), def, []string{"02:30 CEST"}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				a, b := w.replica("a"), w.replica("b")
				for _, r := range []*replica{a, b} {
					r.clock.Skew(test.day.Sub(w.start))
				}
				policy := scheduler.WithDST(test.policy.gap, test.policy.fold)
				a.add("CRON_TZ=Europe/Berlin 30 2 * * *", nil, policy)
				berlin, err := time.LoadLocation("Europe/Berlin")
				require.NoError(t, err)
				b.add("30 2 * * *", nil, scheduler.WithLocation(berlin), policy)
				run(a, b)
				w.at(2 * time.Minute)
				a.clock.Suspend(28 * time.Minute) // both machines sleep from 0:31 to 0:59
				b.clock.Suspend(28 * time.Minute)
				w.at(4 * time.Minute) // 1:01
				a.clock.Suspend(28 * time.Minute)
				b.clock.Suspend(28 * time.Minute)
				w.at(6 * time.Minute) // 1:31
				var got []string
				for _, run := range w.ran() {
					got = append(got, run.Scheduled.Format("15:04 MST"))
				}
				assert.Equal(t, test.want, got)
				// A tick that is left out is told together with the next one.
				y, m, d := test.day.Date()
				next := time.Date(y, m, d+1, 2, 29, 0, 0, berlin)
				a.clock.Skew(time.Until(next))
				b.clock.Skew(time.Until(next))
				w.at(8 * time.Minute)
				require.Len(t, w.ran(), len(test.want)+1)
				assert.Equal(t, test.missed, a.count(scheduler.Missed, scheduler.DST)+b.count(scheduler.Missed, scheduler.DST))
				assert.Zero(t, a.count(scheduler.Mismatch)+b.count(scheduler.Mismatch), "the specs mean the same")
			})
		})
	}
}

func TestWhatOneReplicaSleptThroughTheOthersRun(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b, c := w.replicas("* * * * * *", nil)
		run(a, b, c)
		w.at(5*time.Second + 500*time.Millisecond)
		a.clock.Suspend(10 * time.Second) // and is ahead by that from now on
		w.at(30*time.Second + 500*time.Millisecond)
		w.eachOnce(time.Second, 40*time.Second, time.Second)
		assert.InDelta(t, 10, a.count(scheduler.Missed), 1)
	})
}

func TestAFleetThatWasStartedWithAClockAYearAheadRunsOnOnceItIsSet(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.replica("a")
		a.add("*/10 * * * * *", nil)
		a.clock.Skew(365 * 24 * time.Hour)
		run(a)
		w.at(5 * time.Second)
		a.clock.Skew(0)
		w.at(45 * time.Second)
		assert.Equal(t, seconds(10, 20, 30, 40), w.scheduled())
		assert.Zero(t, a.count(scheduler.Unclaimed)+a.count(scheduler.Missed), "%v", a.events)
	})
}
