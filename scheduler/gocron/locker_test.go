package gocronlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	gocronlock "github.com/quorate/quorate/scheduler/gocron"
)

// gocron #841: "The schedule will likely start at different times across the different instances …
// most of the instances manage to successfully acquire and release the lock". Clocks that are some
// milliseconds apart do the same to a crontab.

func TestThreeReplicasRunEachTickOnceThoughTheirLockIsFreeAgainAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		locker func(*world, *replica) gocron.SchedulerOption
		runs   int
	}{
		"with this Locker": {func(w *world, r *replica) gocron.SchedulerOption { return w.locked()(r) }, 5},
		"with a lock by the job's name alone": {func(_ *world, r *replica) gocron.SchedulerOption {
			return gocron.WithDistributedLocker(byName{r.leases})
		}, 15},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				second()
				for i := range 3 {
					r := w.replica(fmt.Sprint("replica-", i), time.Duration(i)*50*time.Millisecond, func(r *replica) gocron.SchedulerOption { return c.locker(w, r) })
					w.add(r, everySecond(), 10*time.Millisecond)
					r.sched.Start()
				}
				time.Sleep(5*time.Second + 500*time.Millisecond)
				require.Equal(t, c.runs, w.count())
			})
		})
	}
}

func TestReplicasThatStartedAtDifferentTimesRunADurationJobOncePerInterval(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for i := range 3 {
			r := w.replica(fmt.Sprint("replica-", i), 0, w.locked(gocronlock.WithInterval(10*time.Second)))
			w.add(r, gocron.DurationJob(10*time.Second), 10*time.Millisecond)
			r.sched.Start()
			time.Sleep(2500 * time.Millisecond)
		}
		time.Sleep(10 * time.Minute)
		require.InDelta(t, 60, w.count(), 2)
		runs := w.begun()
		for i := 1; i < len(runs); i++ {
			require.GreaterOrEqual(t, runs[i].begun.Sub(runs[i-1].begun), 7500*time.Millisecond)
		}
	})
}

func TestClocksThatDisagreeRunEachTickOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		second()
		const replicas, apart, ticks = 3, 2 * time.Second, 60
		for i := range replicas {
			r := w.replica(fmt.Sprint("replica-", i), time.Duration(i)*apart+time.Duration(i)*7*time.Millisecond, w.locked())
			w.add(r, everySecond(), 10*time.Millisecond)
			r.sched.Start()
		}
		time.Sleep(ticks * time.Second)
		// The clock that is ahead by four seconds has come to four ticks more.
		require.InDelta(t, ticks+4, w.count(), 1)
	})
}

func TestReplicasThatAskInTheSameInstantNeverAllLose(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		second()
		const ticks = 100
		for i := range 3 {
			r := w.replica(fmt.Sprint("replica-", i), 0, w.locked())
			w.add(r, everySecond(), 10*time.Millisecond)
			r.sched.Start()
		}
		time.Sleep(ticks * time.Second)
		require.Equal(t, ticks, w.count())
	})
}

func TestAReplicaWhoseClockIsAYearAheadDoesNotShutTheOthersOut(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		second()
		ahead := w.replica("ahead", 365*24*time.Hour, w.locked())
		right := w.replica("right", 10*time.Millisecond, w.locked())
		for _, r := range []*replica{ahead, right} {
			w.add(r, everySecond(), 10*time.Millisecond)
			r.sched.Start()
		}
		time.Sleep(20 * time.Second)
		counts := map[string]int{}
		for _, one := range w.begun() {
			counts[one.replica]++
		}
		require.InDelta(t, 20, counts["ahead"], 1, "ticks of next year")
		require.InDelta(t, 20, counts["right"], 1, "ticks of today")
	})
}

// gocron-redis-lock #54: "if the task execution time exceeds the expiration time of the redis lock,
// it will result in repeated execution".

func TestARunThatOutlastsTheTTLIsNotOverlapped(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		second()
		for i := range 3 {
			r := w.replica(fmt.Sprint("replica-", i), time.Duration(i)*50*time.Millisecond, w.locked(gocronlock.WithTTL(2*time.Second)))
			w.add(r, everySecond(), 7*time.Second)
			r.sched.Start()
		}
		time.Sleep(time.Minute)
		require.Greater(t, w.count(), 6)
		require.Equal(t, 1, w.atOnce())
	})
}

func TestARunThatOutlastsItsTimeoutLosesItsLeaseAndCanSeeThat(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.replica("replica", 0)
		l, err := gocronlock.NewLocker(r.leases, gocronlock.WithClock(r.clock.Now), gocronlock.WithTTL(2*time.Second), gocronlock.WithTimeout(10*time.Second))
		require.NoError(t, err)
		held, err := l.Lock(t.Context(), "job")
		require.NoError(t, err)
		lease, ok := l.Lease("job")
		require.True(t, ok)
		require.Positive(t, lease.Token())
		begun := time.Now()
		<-lease.Context().Done()
		require.ErrorIs(t, context.Cause(lease.Context()), redlock.ErrExtensionLimit)
		require.InDelta(t, 11, time.Since(begun).Seconds(), 2)
		require.ErrorIs(t, held.Unlock(t.Context()), redlock.ErrExtensionLimit)
		_, ok = l.Lease("job")
		require.False(t, ok)
	})
}

func TestADeadReplicaIsFollowedAfterATTL(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		second()
		const ttl = 3 * time.Second
		dead := w.replica("dead", 0)
		gone, err := gocronlock.NewLocker(dead.leases, gocronlock.WithClock(dead.clock.Now), gocronlock.WithTTL(ttl))
		require.NoError(t, err)
		_, err = gone.Lock(t.Context(), "job")
		require.NoError(t, err)
		w.fleet.Host("dead").Partition(0, 1, 2)

		died := time.Now()
		r := w.replica("alive", 0, w.locked(gocronlock.WithTTL(ttl)))
		w.add(r, everySecond(), 10*time.Millisecond)
		r.sched.Start()
		time.Sleep(20 * time.Second)
		require.NotZero(t, w.count())
		require.InDelta(t, ttl.Seconds(), w.begun()[0].begun.Sub(died).Seconds(), 1)
		require.Greater(t, w.count(), 15)
	})
}

func TestALeaseIsGivenBackThoughGocronHasEndedTheContext(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.replica("replica", 0)
		l, err := gocronlock.NewLocker(r.leases, gocronlock.WithClock(r.clock.Now))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		held, err := l.Lock(ctx, "job")
		require.NoError(t, err)
		cancel()
		require.NoError(t, held.Unlock(ctx))
		status, err := r.leases.Inspect(t.Context(), "gocron/job")
		require.NoError(t, err)
		require.Empty(t, status.Holder)
	})
}

func TestATickIsLostWhereNoMajorityOfNodesAnswersAndTheNextIsNot(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.replica("replica", 0)
		l, err := gocronlock.NewLocker(r.leases, gocronlock.WithClock(r.clock.Now))
		require.NoError(t, err)
		held, err := l.Lock(t.Context(), "job")
		require.NoError(t, err)
		require.NoError(t, held.Unlock(t.Context()))
		w.fleet.Stop(0)
		w.fleet.Stop(1)
		time.Sleep(time.Second)
		begun := time.Now()
		_, err = l.Lock(t.Context(), "job")
		require.Error(t, err)
		require.Less(t, time.Since(begun), time.Second, "gocron is not kept from the next tick")
		w.fleet.Restart(0)
		time.Sleep(redlock.DefaultMaxTTL + 5*time.Second)
		held, err = l.Lock(t.Context(), "job")
		require.NoError(t, err)
		require.NoError(t, held.Unlock(t.Context()))
	})
}

func TestTheStateOfAnotherProgramIsLeftAlone(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.replica("replica", 0)
		l, err := gocronlock.NewLocker(r.leases, gocronlock.WithClock(r.clock.Now))
		require.NoError(t, err)
		lease, err := r.leases.Acquire(t.Context(), "gocron/job")
		require.NoError(t, err)
		require.NoError(t, lease.Save(t.Context(), []byte(`{"something":"else"}`)))
		require.NoError(t, lease.Release(t.Context()))
		_, err = l.Lock(t.Context(), "job")
		require.ErrorIs(t, err, gocronlock.ErrRegister)
		status, err := r.leases.Inspect(t.Context(), "gocron/job")
		require.NoError(t, err)
		require.JSONEq(t, `{"something":"else"}`, string(status.State))
		require.Empty(t, status.Holder)
	})
}

func TestTheListOfClaimsFitsIntoAState(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.replica("replica", 0)
		l, err := gocronlock.NewLocker(r.leases, gocronlock.WithClock(r.clock.Now))
		require.NoError(t, err)
		for range 300 {
			held, err := l.Lock(t.Context(), "job")
			require.NoError(t, err)
			require.NoError(t, held.Unlock(t.Context()))
			_, err = l.Lock(t.Context(), "job")
			require.ErrorIs(t, err, gocronlock.ErrClaimed)
			time.Sleep(time.Second)
		}
		status, err := r.leases.Inspect(t.Context(), "gocron/job")
		require.NoError(t, err)
		require.Less(t, len(status.State), redlock.MaxStateSize/2)
	})
}

func TestSettingsThatMakeNoSenseAreRefused(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.replica("replica", 0)
		for name, c := range map[string]struct {
			opt gocronlock.Option
			err error
		}{
			"nil":         {nil, redlock.ErrInvalidOption},
			"no interval": {gocronlock.WithInterval(0), redlock.ErrInvalidOption},
			"no timeout":  {gocronlock.WithTimeout(0), redlock.ErrInvalidOption},
			"no clock":    {gocronlock.WithClock(nil), redlock.ErrInvalidOption},
			"short TTL":   {gocronlock.WithTTL(time.Millisecond), redlock.ErrTTLTooShort},
			"long TTL":    {gocronlock.WithTTL(time.Hour), redlock.ErrTTLTooLong},
			"prefix":      {gocronlock.WithPrefix("}"), redlock.ErrInvalidName},
		} {
			_, err := gocronlock.NewLocker(r.leases, c.opt)
			require.ErrorIs(t, err, c.err, name)
		}
		_, err := gocronlock.NewLocker(nil)
		require.ErrorIs(t, err, redlock.ErrInvalidOption)
		_, err = gocronlock.NewElector(nil)
		require.ErrorIs(t, err, redlock.ErrInvalidOption)
	})
}
