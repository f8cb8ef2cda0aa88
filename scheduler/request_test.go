package scheduler_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/scheduler"
)

// operator is a process that knows none of the jobs.
func (w *world) operator() *scheduler.Scheduler { return w.replica("operator").sched }

func TestAPauseIsHeededByAllReplicasAndItsTicksStayMissed(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b, c := w.replicas("* * * * * *", nil, scheduler.WithMisfire(scheduler.MisfireAll(1000)))
		run(a, b, c)
		w.at(10*time.Second + 500*time.Millisecond)
		require.NoError(t, w.operator().Pause(t.Context(), "tick"))
		w.at(11*time.Second + 500*time.Millisecond)
		n := len(w.ran())
		assert.LessOrEqual(t, n, 11)
		w.at(20*time.Second + 500*time.Millisecond)
		assert.Len(t, w.ran(), n)
		require.NoError(t, w.operator().Pause(t.Context(), "tick"), "to pause again does no harm")
		status, err := w.operator().Status(t.Context(), "tick")
		require.NoError(t, err)
		assert.True(t, status.Paused)
		assert.Equal(t, "operator", status.PausedBy)
		assert.Equal(t, w.start.Add(10*time.Second+500*time.Millisecond), status.PausedSince.Local())
		last := status.History[len(status.History)-1]
		assert.Equal(t, []any{scheduler.Missed, scheduler.Paused}, []any{last.Outcome, last.Reason})
		assert.Equal(t, 10, last.Ticks)

		a.shutDown() // the pause is not its own affair
		require.NoError(t, w.operator().Resume(t.Context(), "tick"))
		w.at(30*time.Second + 500*time.Millisecond)
		assert.Len(t, w.ran(), n+10)
		w.eachOnce(21*time.Second, 30*time.Second, time.Second)
		paused := 0
		for _, r := range []*replica{a, b, c} {
			paused += r.count(scheduler.Missed, scheduler.Paused)
			assert.Zero(t, r.count(scheduler.Unclaimed))
		}
		assert.Equal(t, 10, paused, "each told once")
	})
}

func TestTicksOfAPauseStayMissedThoughNobodyWasThere(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b, _ := w.replicas("0 * * * * *", nil, scheduler.WithMisfire(scheduler.MisfireAll(1000)))
		run(a)
		w.at(90 * time.Second)
		a.shutDown()
		require.NoError(t, w.operator().Pause(t.Context(), "tick"))
		w.at(4*time.Minute + 30*time.Second)
		require.NoError(t, w.operator().Resume(t.Context(), "tick"))
		w.at(6*time.Minute + 30*time.Second)
		run(b)
		w.at(7*time.Minute + 30*time.Second)
		assert.Equal(t, minutes(1, 5, 6, 7), w.scheduled())
		assert.Equal(t, 3, b.count(scheduler.Missed, scheduler.Paused))
	})
}

// kubernetes #47538 (start a cron job by hand).
func TestATriggerRunsTheJobOnceNow(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b, c := w.replicas("@yearly", nil)
		run(a, b, c)
		w.at(10 * time.Second)
		at := time.Now()
		require.NoError(t, w.operator().Trigger(t.Context(), "tick"))
		w.at(11 * time.Second)
		require.Len(t, w.ran(), 1)
		assert.Equal(t, scheduler.Triggered, w.ran()[0].Kind)
		assert.Equal(t, at, w.ran()[0].Scheduled.Local())
		w.at(20 * time.Second)
		require.NoError(t, w.operator().Pause(t.Context(), "tick"))
		require.NoError(t, w.operator().Trigger(t.Context(), "tick"))
		require.NoError(t, w.operator().Trigger(t.Context(), "tick"))
		w.at(30 * time.Second)
		assert.Len(t, w.ran(), 3, "also while it is paused, each once")
		status, err := w.operator().Status(t.Context(), "tick")
		require.NoError(t, err)
		assert.Zero(t, status.Waiting)
		assert.Len(t, status.History, 3)
	})
}

func TestATriggerWaitsForTheRunThatGoesOnAndCostsNoTick(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		work := func(context.Context, *replica, scheduler.Run) error { time.Sleep(25 * time.Second); return nil }
		a, b, c := w.replicas("0 * * * * *", work)
		run(a, b, c)
		w.at(70 * time.Second)
		require.NoError(t, w.operator().Trigger(t.Context(), "tick")) // 1:25–1:50
		w.at(80 * time.Second)
		require.NoError(t, w.operator().Trigger(t.Context(), "tick")) // 1:50–2:15
		status, err := w.operator().Status(t.Context(), "tick")
		require.NoError(t, err)
		assert.Equal(t, 2, status.Waiting)
		w.at(3*time.Minute + 30*time.Second)
		var kinds []scheduler.Kind
		for _, run := range w.ran() {
			kinds = append(kinds, run.Kind)
		}
		assert.Equal(t, []scheduler.Kind{scheduler.Scheduled, scheduler.Triggered, scheduler.Triggered, scheduler.Scheduled, scheduler.Scheduled}, kinds)
		assert.Zero(t, a.count(scheduler.Missed)+b.count(scheduler.Missed)+c.count(scheduler.Missed))
	})
}

func TestABackfillRunsEachTickOfARangeOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.at(time.Hour)
		a, b, c := w.replicas("0 */10 * * * *", func(context.Context, *replica, scheduler.Run) error { time.Sleep(time.Second); return nil })
		run(a, b)
		w.at(time.Hour + time.Minute)
		require.NoError(t, w.operator().Backfill(t.Context(), "tick", w.start.Add(10*time.Minute), w.start.Add(40*time.Minute)))
		require.NoError(t, w.operator().Backfill(t.Context(), "tick", w.start.Add(20*time.Minute), w.start.Add(20*time.Minute)))
		w.at(time.Hour + time.Minute + 2500*time.Millisecond)
		a.shutDown() // another goes on
		run(c)
		w.at(time.Hour + 2*time.Minute)
		assert.Equal(t, minutes(10, 20, 30, 40, 20), w.scheduled())
		for _, run := range w.ran() {
			assert.Equal(t, scheduler.Backfilled, run.Kind)
		}
		w.at(time.Hour + 15*time.Minute)
		assert.Equal(t, minutes(10, 20, 30, 40, 20, 70), w.scheduled())
	})
}

func TestATriggeredRunIsTakenOverToo(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		work := func(ctx context.Context, r *replica, run scheduler.Run) error {
			if run.Attempt == 1 {
				r.host.Partition()
				<-ctx.Done()
				r.host.Heal()
			}
			return nil
		}
		a, b, c := w.replicas("@yearly", work, scheduler.WithAtLeastOnce(2))
		run(a, b, c)
		w.at(time.Second)
		require.NoError(t, w.operator().Trigger(t.Context(), "tick"))
		w.at(20 * time.Second)
		require.Len(t, w.ran(), 2)
		assert.Equal(t, w.ran()[0].Scheduled, w.ran()[1].Scheduled)
		assert.Equal(t, scheduler.Triggered, w.ran()[1].Kind)
	})
}

func TestRequestsThatMakeNoSenseAreRefused(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.replica("a")
		a.add("* * * * * *", nil)
		op := w.operator()
		now := time.Now()
		for name, test := range map[string]struct {
			err  error
			want error
			says string
		}{
			"pause":     {op.Pause(t.Context(), "unknown"), scheduler.ErrUnknownJob, `pause job "unknown"`},
			"resume":    {op.Resume(t.Context(), "unknown"), scheduler.ErrUnknownJob, `resume job "unknown"`},
			"trigger":   {op.Trigger(t.Context(), ""), scheduler.ErrUnknownJob, `trigger job ""`},
			"reversed":  {a.sched.Backfill(t.Context(), "tick", now, now.Add(-time.Hour)), scheduler.ErrInvalidOption, "empty"},
			"zero":      {a.sched.Backfill(t.Context(), "tick", time.Time{}, now), scheduler.ErrInvalidOption, "empty"},
			"future":    {a.sched.Backfill(t.Context(), "tick", now, now.Add(time.Hour)), scheduler.ErrInvalidOption, "future"},
			"too large": {a.sched.Backfill(t.Context(), "tick", now.Add(-24*time.Hour), now), scheduler.ErrInvalidOption, "10000 ticks"},
		} {
			require.ErrorIs(t, test.err, test.want, name)
			require.ErrorContains(t, test.err, test.says, name)
		}
		_, err := op.History(t.Context(), "unknown")
		require.ErrorIs(t, err, scheduler.ErrUnknownJob)
		require.NoError(t, a.sched.Pause(t.Context(), "tick"), "a job that has never run, where it is known")
		for range 32 {
			require.NoError(t, a.sched.Trigger(t.Context(), "tick"))
		}
		require.ErrorIs(t, a.sched.Trigger(t.Context(), "tick"), scheduler.ErrTooManyRequests)
		w.fleet.Partition()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, a.sched.Pause(ctx, "tick"), redlock.ErrNoQuorum)
		w.fleet.Heal()
		run(a)
		w.at(20 * time.Second)
		assert.Len(t, w.ran(), 32)
	})
}

// More changes than the bell has room for.
func TestManyRequestsAtOnceAreAllHeard(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.replica("a")
		var mu sync.Mutex
		ran := map[string]int{}
		for i := range 50 {
			name := fmt.Sprint("job", i)
			require.NoError(t, a.sched.Add(name, "@yearly", func(context.Context, scheduler.Run) error {
				mu.Lock()
				defer mu.Unlock()
				ran[name]++
				return nil
			}))
		}
		run(a)
		w.at(time.Second)
		op := w.operator()
		a.host.Partition()
		for i := range 50 {
			require.NoError(t, op.Trigger(t.Context(), fmt.Sprint("job", i)))
		}
		a.host.Heal()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.Len(t, ran, 50)
		for name, n := range ran {
			assert.Equal(t, 1, n, name)
		}
	})
}

func TestTheLedgerTellsWhatBecameOfTheTicks(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		tokyo, err := time.LoadLocation("Asia/Tokyo")
		require.NoError(t, err)
		work := func(_ context.Context, _ *replica, run scheduler.Run) error {
			switch run.Scheduled.Minute() {
			case 1:
				return nil
			case 2:
				return fmt.Errorf("no paper%500d", 1)
			case 3:
				panic("no toner")
			}
			time.Sleep(90 * time.Second)
			return nil
		}
		a := w.replica("a")
		a.add("0 * * * * *", work, scheduler.WithLocation(tokyo), scheduler.WithLabels(map[string]string{"team": "billing"}))
		run(a)
		w.at(5*time.Minute + 20*time.Second) // in the run of 4:00, which 5:00 overlapped
		history, err := a.sched.History(t.Context(), "tick")
		require.NoError(t, err)
		require.Len(t, history, 4)
		ran, failed, panicked, running := history[0], history[1], history[2], history[3]
		assert.Equal(t, scheduler.Record{
			Kind: scheduler.Scheduled, Scheduled: w.ran()[0].Scheduled, Ticks: 1, Outcome: scheduler.Ran, Started: w.ran()[0].at.Truncate(time.Millisecond).In(tokyo),
			Ended: ran.Ended, Replica: "a", Token: w.ran()[0].Token, Attempt: 1,
		}, ran)
		assert.Equal(t, scheduler.Failed, failed.Outcome)
		assert.Contains(t, failed.Err, "no paper")
		assert.LessOrEqual(t, len(failed.Err), 210)
		assert.Equal(t, scheduler.Panicked, panicked.Outcome)
		assert.Contains(t, panicked.Err, "no toner")
		assert.Equal(t, scheduler.Running, running.Outcome)
		assert.Equal(t, "09:04 JST", running.Scheduled.Format("15:04 MST"))
		w.at(5*time.Minute + 40*time.Second)
		history, err = w.operator().History(t.Context(), "tick")
		require.NoError(t, err)
		require.Len(t, history, 5)
		assert.Equal(t, scheduler.Overlap, history[3].Reason)
		assert.Equal(t, 90*time.Second, history[4].Ended.Sub(history[4].Started).Round(time.Second))
		assert.Equal(t, map[string]string{"team": "billing"}, a.last(scheduler.Ran).Labels)
	})
}

// A replica that reads the control of a job, and then for the first time the bell, would miss what is
// asked in between.
func TestWhatIsAskedWhileAReplicaStartsIsHeard(t *testing.T) {
	for delay := 10 * time.Millisecond; delay < 600*time.Millisecond; delay += 70 * time.Millisecond {
		bubble(t, func(t *testing.T, w *world) {
			a, b := w.replica("a"), w.replica("b")
			a.add("@yearly", nil)
			require.NoError(t, b.sched.Add("tick", "@yearly", nothing))
			for range 40 { // more than the bell remembers
				require.NoError(t, b.sched.Pause(t.Context(), "tick"))
			}
			a.host.Partition()
			run(a) // its first look at the bell is in vain, and the next half a second away
			time.Sleep(5 * time.Millisecond)
			a.host.Heal()
			time.Sleep(delay)
			require.NoError(t, b.sched.Trigger(t.Context(), "tick"))
			time.Sleep(5 * time.Second)
			synctest.Wait()
			assert.Len(t, w.ran(), 1, "asked %v after the start", delay)
		})
	}
}

func TestAPauseFromBeforeRunWasCalledAgainIsHeeded(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.replica("a")
		a.add("0 * * * * *", nil)
		run(a)
		w.at(90 * time.Second)
		a.shutDown()
		require.NoError(t, w.operator().Pause(t.Context(), "tick"))
		w.at(150 * time.Second)
		run(a)
		w.at(200 * time.Second)
		assert.Equal(t, minutes(1), w.scheduled())
		assert.Equal(t, 2, a.count(scheduler.Missed, scheduler.Paused))
	})
}

func TestRequestsOfReplicasWithLongNamesHaveRoom(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.at(time.Hour)
		a := w.replica("a", scheduler.WithIdentity(strings.Repeat("<", 128)))
		a.add("*/10 * * * *", nil)
		now := time.Now()
		for range 32 {
			require.NoError(t, a.sched.Trigger(t.Context(), "tick"))
			require.NoError(t, a.sched.Backfill(t.Context(), "tick", now.Add(-time.Minute), now))
		}
		require.ErrorIs(t, a.sched.Trigger(t.Context(), "tick"), scheduler.ErrTooManyRequests)
		require.NoError(t, a.sched.Pause(t.Context(), "tick"))
		run(a)
		w.at(time.Hour + 20*time.Second)
		for range 32 {
			require.NoError(t, a.sched.Trigger(t.Context(), "tick"))
			require.NoError(t, a.sched.Backfill(t.Context(), "tick", now.Add(-time.Minute), now))
		}
		w.at(time.Hour + 40*time.Second)
		require.NoError(t, a.sched.Resume(t.Context(), "tick"))
		status, err := a.sched.Status(t.Context(), "tick")
		require.NoError(t, err)
		assert.Zero(t, status.Waiting)
		assert.Len(t, w.ran(), 128)
	})
}

// What was asked while a machine slept is heard before it acts on what it knew.
func TestAReplicaThatWakesUpHeedsAPauseFromMeanwhile(t *testing.T) {
	for range 5 {
		bubble(t, func(t *testing.T, w *world) {
			a, op := w.replica("a"), w.operator()
			a.add("0 * * * * *", nil)
			run(a)
			w.at(61 * time.Second)
			require.Len(t, w.ran(), 1)
			a.host.Partition() // it sleeps
			require.NoError(t, op.Pause(t.Context(), "tick"))
			w.at(100 * time.Second)
			a.host.Heal()
			a.clock.Suspend(20*time.Second - 10*time.Millisecond) // the tick of 2:00 is due in a moment
			w.at(110 * time.Second)
			assert.Len(t, w.ran(), 1)
			assert.Equal(t, 1, a.count(scheduler.Missed, scheduler.Paused))
		})
	}
}
