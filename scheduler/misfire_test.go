package scheduler_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/scheduler"
)

// scheduled gives the ticks that were run, as times after the start of the test.
func (w *world) scheduled() []time.Duration {
	var ticks []time.Duration
	for _, run := range w.ran() {
		ticks = append(ticks, run.Scheduled.Sub(w.start))
	}
	return ticks
}

func minutes(n ...int) []time.Duration {
	var d []time.Duration
	for _, m := range n {
		d = append(d, time.Duration(m)*time.Minute)
	}
	return d
}

// sidekiq #6804 (a gap between leaders lost the daily job), river #791 (a weekly job never ran
// where deployments were more frequent): the register knows what fell due while nobody was there.
func TestTicksThatFellDueWhileTheFleetWasDownAreRunByPolicy(t *testing.T) {
	for _, test := range []struct {
		name   string
		opts   []scheduler.JobOption
		want   []time.Duration // of the ticks at 10:00, 20:00, … 60:00, in which the fleet was down
		missed int
	}{
		{"the newest by default", nil, minutes(60), 5},
		{"none", []scheduler.JobOption{scheduler.WithMisfire(scheduler.MisfireSkip())}, nil, 6},
		{"all", []scheduler.JobOption{scheduler.WithMisfire(scheduler.MisfireAll(100))}, minutes(10, 20, 30, 40, 50, 60), 0},
		{"some", []scheduler.JobOption{scheduler.WithMisfire(scheduler.MisfireAll(2))}, minutes(50, 60), 4},
		{"those in the window", []scheduler.JobOption{scheduler.WithMisfire(scheduler.MisfireAll(100)), scheduler.WithCatchUp(30 * time.Minute)}, minutes(40, 50, 60), 3},
		{"the newest is too old", []scheduler.JobOption{scheduler.WithCatchUp(2 * time.Minute)}, nil, 6},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				a, b, c := w.replicas("0 */10 * * * *", nil, test.opts...)
				run(a)
				w.at(time.Minute)
				a.shutDown()
				w.at(68 * time.Minute)
				run(b, c)
				w.at(69 * time.Minute)
				assert.Equal(t, test.want, w.scheduled())
				assert.Equal(t, test.missed, b.count(scheduler.Missed, scheduler.Late)+c.count(scheduler.Missed, scheduler.Late))
				for _, run := range w.ran() {
					assert.Less(t, run.at.Sub(w.start), 68*time.Minute+2*time.Second, "at once")
				}
				w.at(71 * time.Minute)
				assert.Equal(t, append(test.want, 70*time.Minute), w.scheduled(), "and once")
				w.times()
			})
		})
	}
}

// sidekiq #3163 (the leader alive, its scheduler dead for days), #6804: a gap of 8 ms, or of a
// deployment, at the moment of the tick.
func TestATickInTheMomentOfADeploymentIsRun(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b, c := w.replicas("0 0 2 * * *", nil)
		a.clock.Skew(2*time.Hour - time.Minute)
		b.clock.Skew(2*time.Hour - time.Minute)
		c.clock.Skew(2*time.Hour - time.Minute)
		run(a)
		w.at(time.Minute - 4*time.Millisecond)
		a.shutDown()
		w.at(time.Minute + 4*time.Millisecond)
		run(b)
		w.at(2 * time.Minute)
		assert.Equal(t, []time.Duration{2 * time.Hour}, w.scheduled())
	})
}

func TestAJobThatIsNewRunsNothingFromBefore(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, _, _ := w.replicas("0 * * * * *", nil, scheduler.WithMisfire(scheduler.MisfireAll(100)))
		w.at(10*time.Minute + time.Second)
		run(a)
		w.at(11*time.Minute + time.Second)
		assert.Equal(t, minutes(11), w.scheduled())
		assert.Zero(t, a.count(scheduler.Missed))
	})
}

// kubernetes #63371: an edited schedule fired for times at which it was not in force, a thousand
// times.
func TestAChangedSpecNeverFiresRetroactively(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		before, after := w.replica("a"), w.replica("b")
		all := scheduler.WithMisfire(scheduler.MisfireAll(1000))
		before.add("0 55 * * * *", nil, all)
		after.add("*/10 * * * * *", nil, all)
		run(before)
		w.at(30 * time.Minute)
		before.shutDown()
		w.at(30*time.Minute + time.Second)
		run(after)
		w.at(30*time.Minute + 25*time.Second)
		assert.Equal(t, []time.Duration{30*time.Minute + 10*time.Second, 30*time.Minute + 20*time.Second}, w.scheduled())
		after.shutDown()
		w.at(30*time.Minute + 55*time.Second)
		run(after)
		w.at(31 * time.Minute)
		assert.Equal(t, 30*time.Minute+30*time.Second, w.scheduled()[2], "from now on it is the spec in force")
		w.eachOnce(30*time.Minute+10*time.Second, 31*time.Minute, 10*time.Second)
	})
}

// river #658 (only the leader's job list counts): a rolling deployment.
func TestReplicasWithOtherJobsAndOtherSpecsGoOnBesideEachOther(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		before, after := w.replica("a"), w.replica("b")
		before.add("*/20 * * * * *", nil)
		after.add("10-59/20 * * * * *", nil)
		var mu sync.Mutex
		only := make(map[string]int)
		add := func(r *replica, name string) {
			require.NoError(t, r.sched.Add(name, "*/30 * * * * *", func(context.Context, scheduler.Run) error {
				mu.Lock()
				defer mu.Unlock()
				only[name]++
				return nil
			}))
		}
		add(before, "old")
		add(after, "new")
		run(before)
		w.at(30*time.Second + 500*time.Millisecond)
		run(after)
		w.at(121 * time.Second)
		times := w.times()
		for tick := 40 * time.Second; tick <= 120*time.Second; tick += 10 * time.Second {
			assert.Equal(t, 1, times[tick], "tick %v", tick)
		}
		assert.Equal(t, map[string]int{"old": 4, "new": 3}, only, "a job runs where it is known")
		assert.Equal(t, "tick", before.last(scheduler.Mismatch).Job)
		assert.Equal(t, "tick", after.last(scheduler.Mismatch).Job)
		assert.Zero(t, before.count(scheduler.Missed)+after.count(scheduler.Missed))
	})
}

// What is known of a job that comes due once a week must be there a week later, though the nodes
// forget what was not used for a day: here, for a minute. And so must its pause.
func TestWhatIsKnownOfARareJobIsNotForgotten(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.replica("a")
		locker, err := redlock.New(r.host.Clients(), redlock.WithClock(r.clock), redlock.WithLogger(quiet()), redlock.WithFenceTTL(time.Minute))
		require.NoError(t, err)
		defer func() { require.NoError(t, locker.Close()) }()
		sched, err := scheduler.New(locker, scheduler.WithClock(r.clock), scheduler.WithLogger(quiet()))
		require.NoError(t, err)
		require.NoError(t, sched.Add("weekly", "@weekly", nothing))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- sched.Run(ctx) }()
		w.at(time.Second)
		first, ok := w.fleet.Get(0, "{quorate:job/weekly}:fence")
		require.True(t, ok)
		require.Contains(t, first, `"since":946684800000`)
		require.NoError(t, sched.Pause(t.Context(), "weekly"))
		for at := 10 * time.Second; at < 20*time.Minute; at += 10 * time.Second {
			w.at(at)
			for _, name := range []string{"job", "control"} {
				require.Greater(t, w.fleet.TTL(0, "{quorate:"+name+"/weekly}:fence"), 5*time.Second, "%s, at %v", name, at)
			}
		}
		status, err := sched.Status(t.Context(), "weekly")
		require.NoError(t, err)
		assert.True(t, status.Paused)
		cancel()
		require.NoError(t, <-ended)
	})
}

// temporal #8087, and the issue that no other scheduler closes: nobody ran the tick, and nobody
// said so.
func TestEveryReplicaRaisesTheAlarmAboutATickThatNobodyClaims(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b, c := w.replicas("0 * * * * *", nil, scheduler.WithStartDeadline(10*time.Second))
		run(a, b, c)
		w.at(30 * time.Second)
		w.fleet.Partition(0, 1)
		w.at(69 * time.Second)
		require.Zero(t, a.count(scheduler.Unclaimed))
		w.at(72 * time.Second)
		for _, r := range []*replica{a, b, c} {
			require.Equal(t, 1, r.count(scheduler.Unclaimed, scheduler.NoQuorum))
			assert.Equal(t, w.start.Add(time.Minute), r.last(scheduler.Unclaimed).Scheduled.Local())
		}
		w.fleet.Heal()
		w.at(90 * time.Second)
		assert.Equal(t, minutes(1), w.scheduled(), "it is run late, by the policy")
		w.at(130 * time.Second)
		assert.Equal(t, minutes(1, 2), w.scheduled())
		assert.Equal(t, 1, a.count(scheduler.Unclaimed))
	})
}

// robfig/cron's own schedules, and any other.
type friday13th struct{}

func (friday13th) Next(t time.Time) time.Time {
	for t = t.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1); t.Day() != 13 || t.Weekday() != time.Friday; {
		t = t.AddDate(0, 0, 1)
	}
	return t
}

func TestSchedulesOfAnyKind(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.replica("a")
		require.NoError(t, a.sched.AddSchedule("friday", friday13th{}, nothing))
		next, err := a.sched.Next("friday", 2)
		require.NoError(t, err)
		assert.Equal(t, []string{"2000-10-13", "2001-04-13"}, []string{next[0].Format(time.DateOnly), next[1].Format(time.DateOnly)})
		require.ErrorIs(t, a.sched.AddSchedule("nil", nil, nothing), scheduler.ErrInvalidSpec)
		err = a.sched.AddSchedule("every", cron.Every(time.Minute), nothing)
		require.ErrorIs(t, err, scheduler.ErrInvalidSpec)
		require.ErrorContains(t, err, "@every")
		_, err = a.sched.Next("unknown", 1)
		require.ErrorIs(t, err, scheduler.ErrUnknownJob)

		require.NoError(t, a.sched.AddAt("once", w.start.Add(time.Minute), nothing))
		require.ErrorIs(t, a.sched.AddAt("zero", time.Time{}, nothing), scheduler.ErrInvalidSpec)
		run(a)
		w.at(5 * time.Minute)
		assert.Equal(t, 1, a.count(scheduler.Ran))
		next, err = a.sched.Next("once", 3)
		require.NoError(t, err)
		assert.Empty(t, next)
		a.shutDown()
		b := w.replica("b")
		require.NoError(t, b.sched.AddAt("once", w.start.Add(time.Minute), nothing), "the service is started again")
		run(b)
		w.at(10 * time.Minute)
		assert.Zero(t, b.count(scheduler.Ran))
	})
}

func TestJitterIsTheSameOnAllReplicas(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b, c := w.replicas("0 * * * * *", nil, scheduler.WithJitter(40*time.Second))
		run(a, b, c)
		w.at(10*time.Minute + 45*time.Second)
		w.eachOnce(time.Minute, 10*time.Minute, time.Minute)
		var least, most time.Duration = time.Hour, 0
		for _, run := range w.ran() {
			delay := run.at.Sub(run.Scheduled)
			least, most = min(least, delay), max(most, delay)
		}
		assert.Less(t, most, 41*time.Second)
		assert.Greater(t, most-least, 10*time.Second)
		assert.Zero(t, a.count(scheduler.Unclaimed)+b.count(scheduler.Unclaimed)+c.count(scheduler.Unclaimed))
	})
}

// With a jitter longer than the interval, ticks do not come due in their order.
func TestJitterLongerThanTheIntervalLosesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b, c := w.replicas("*/10 * * * * *", nil, scheduler.WithJitter(45*time.Second), scheduler.WithMisfire(scheduler.MisfireAll(100)))
		run(a, b, c)
		w.at(5*time.Minute + 50*time.Second)
		w.eachOnce(10*time.Second, 5*time.Minute, 10*time.Second)
	})
}

func TestAReplicaAtItsLimitLeavesTicksToOthers(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var running, most atomic.Int32
		busy, idle := w.replica("a", scheduler.WithMaxRuns(2)), w.replica("b")
		work := func(context.Context, scheduler.Run) error {
			most.Store(max(most.Load(), running.Add(1)))
			time.Sleep(20 * time.Second)
			running.Add(-1)
			return nil
		}
		for _, name := range []string{"one", "two", "three"} {
			require.NoError(t, busy.sched.Add(name, "0 * * * * *", work, scheduler.WithStartDeadline(5*time.Second)))
		}
		run(busy)
		w.at(75 * time.Second)
		assert.EqualValues(t, 2, most.Load())
		assert.Equal(t, 1, busy.count(scheduler.Unclaimed, scheduler.Busy))
		for _, name := range []string{"one", "two", "three"} {
			require.NoError(t, idle.sched.Add(name, "0 * * * * *", nothing, scheduler.WithStartDeadline(5*time.Second)))
		}
		w.at(100 * time.Second)
		assert.Equal(t, 3, busy.count(scheduler.Ran)+int(running.Load()), "when there is room")
		w.at(119 * time.Second)
		run(idle)
		w.at(125 * time.Second)
		assert.EqualValues(t, 2, most.Load())
		assert.Equal(t, 3, int(running.Load())+idle.count(scheduler.Ran))
	})
}
