package scheduler_test

import (
	"bytes"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/scheduler"
)

// crons are replicas with a cron of their own each, which count what they run by second.
func (w *world) crons(spec string, work func(), opts ...scheduler.JobOption) (ran func() map[int]int, stop func()) {
	var mu sync.Mutex
	n := map[int]int{}
	var all []*cron.Cron
	for _, name := range []string{"a", "b", "c"} {
		r := w.replica(name)
		c := cron.New(cron.WithSeconds(), cron.WithLogger(cron.DiscardLogger), cron.WithChain(scheduler.Singleton(r.sched, "report", opts...)))
		_, err := c.AddFunc(spec, func() {
			mu.Lock()
			n[int(time.Since(w.start).Seconds())]++
			mu.Unlock()
			if work != nil {
				work()
			}
		})
		require.NoError(w.t, err)
		c.Start()
		all = append(all, c)
	}
	return func() map[int]int {
			mu.Lock()
			defer mu.Unlock()
			return n
		}, func() {
			for _, c := range all {
				<-c.Stop().Done()
			}
		}
}

func TestAJobOfCronsIsRunOnceAcrossTheFleet(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ran, stop := w.crons("*/2 * * * * *", nil)
		w.at(60*time.Second + 500*time.Millisecond)
		stop()
		require.Len(t, ran(), 30)
		for at, n := range ran() {
			assert.Equal(t, 1, n, "at %d", at)
		}
	})
}

func TestAJobOfCronsIsPausedAndDoesNotOverlapItself(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ran, stop := w.crons("*/10 * * * * *", func() { time.Sleep(15 * time.Second) }, scheduler.WithStartDeadline(2*time.Second))
		w.at(48 * time.Second)
		assert.Equal(t, map[int]int{10: 1, 30: 1}, ran())
		require.NoError(t, w.operator().Pause(t.Context(), "report"))
		w.at(75 * time.Second)
		assert.Len(t, ran(), 2)
		require.NoError(t, w.operator().Resume(t.Context(), "report"))
		w.at(100 * time.Second)
		assert.Len(t, ran(), 4)
		history, err := w.operator().History(t.Context(), "report")
		require.NoError(t, err)
		assert.NotEmpty(t, history)
		stop()
	})
}

func TestAWrapperIsForOneJobAndSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var log bytes.Buffer
		r := w.replica("a", scheduler.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		n := 0
		wrap := scheduler.Singleton(r.sched, "one")
		first, second := wrap(cron.FuncJob(func() { n++ })), wrap(cron.FuncJob(func() { n += 10 }))
		first.Run()
		require.Empty(t, log.String())
		second.Run()
		assert.Contains(t, log.String(), "duplicate job")
		scheduler.Singleton(r.sched, "")(cron.FuncJob(func() { n += 100 })).Run()
		assert.Contains(t, log.String(), "it has no name")
		scheduler.Singleton(r.sched, "x", scheduler.WithTimeout(-1))(cron.FuncJob(func() { n += 100 })).Run()
		assert.Contains(t, log.String(), "timeout")
		assert.Equal(t, 1, n)
		scheduler.Singleton(r.sched, "panics")(cron.FuncJob(func() { panic("no toner") })).Run()
		assert.Contains(t, log.String(), "no toner")
		require.NoError(t, r.locker.Close())
		first.Run()
	})
}

// One cron whose clock is a year ahead.
func TestAWrongClockDoesNotStopAJobOfCrons(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var n atomic.Int32
		a, b := w.replica("a"), w.replica("b")
		a.clock.Skew(365 * 24 * time.Hour)
		var jobs []cron.Job
		for _, r := range []*replica{a, b} {
			jobs = append(jobs, scheduler.Singleton(r.sched, "report")(cron.FuncJob(func() { n.Add(1) })))
		}
		for i := range 20 {
			w.at(time.Duration(i+1) * 10 * time.Second)
			jobs[1].Run()
			require.EqualValues(t, 2*i+1, n.Load())
			jobs[0].Run()
			require.EqualValues(t, 2*i+2, n.Load())
		}
	})
}
