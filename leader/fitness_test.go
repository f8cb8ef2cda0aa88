package leader_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

var errNoDisk = errors.New("no disk")

// patient is somebody whose health a test decides on.
type patient struct {
	sick, hangs, panics atomic.Bool
	asked               atomic.Int64
	released            chan struct{} // closed: no check hangs any more
}

func newPatient() *patient { return &patient{released: make(chan struct{})} }

func (p *patient) check(context.Context) error {
	p.asked.Add(1)
	switch {
	case p.hangs.Load():
		<-p.released
	case p.panics.Load():
		panic("no disk")
	case p.sick.Load():
		return errNoDisk
	}
	return nil
}

// river #1161: elected, but half working.
func TestAnUnhealthyLeaderStepsDownAndIsNoCandidateUntilItIsWell(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		p := newPatient()
		a := start(t, candidate(t, f, "a", leader.WithHealthCheck(p.check, time.Second)), untilTold)
		a.leads(t)
		b := start(t, candidate(t, f, "b"), untilTold)
		time.Sleep(time.Minute)
		p.sick.Store(true)
		fell := time.Now()
		b.leads(t)
		assert.LessOrEqual(t, time.Since(fell), time.Second+atOnce)
		cause := context.Cause(a.served.last().ctx)
		require.ErrorIs(t, cause, leader.ErrUnhealthy)
		require.ErrorIs(t, cause, errNoDisk)

		b.stop()
		require.NoError(t, b.wait(t))
		time.Sleep(time.Hour)
		assert.Len(t, a.served.all(), 1, "nobody leads, and yet it does not stand")
		assert.Zero(t, locked(f))
		p.sick.Store(false)
		well := time.Now()
		a.leads(t)
		assert.LessOrEqual(t, time.Since(well), time.Second+atOnce)
	})
}

func TestACandidateThatWasNeverHealthyNeverStands(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		p := newPatient()
		p.sick.Store(true)
		events := &journal{}
		r := start(t, candidate(t, f, "a", leader.WithHealthCheck(p.check, 0), leader.WithObserver(events.note("a"))), untilTold)
		time.Sleep(time.Minute)
		assert.Empty(t, r.served.all())
		assert.Empty(t, events.all())
		assert.InDelta(t, time.Minute/(ttl/4), p.asked.Load(), 1, "four times in a TTL")
		r.stop()
		require.NoError(t, r.wait(t), "it can be told to stop all the same")
	})
}

func TestACandidateThatFallsIllWhileItWaitsGivesUpItsPlace(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		first := start(t, candidate(t, f, "first"), untilTold)
		first.leads(t)
		p := newPatient()
		ill := start(t, candidate(t, f, "ill", leader.WithHealthCheck(p.check, time.Second)), untilTold)
		time.Sleep(time.Minute)
		p.sick.Store(true)
		time.Sleep(time.Minute)
		first.stop()
		require.NoError(t, first.wait(t))
		time.Sleep(time.Minute)
		assert.Empty(t, ill.served.all())
		assert.Zero(t, locked(f))
		p.sick.Store(false)
		ill.leads(t)
	})
}

func TestACheckThatHangsCountsAsFailedAndHoldsUpNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		p := newPatient()
		e := candidate(t, f, "a", leader.WithHealthCheck(p.check, time.Second))
		a := start(t, e, untilTold)
		a.leads(t)
		b := start(t, candidate(t, f, "b"), untilTold)
		time.Sleep(time.Minute)
		p.hangs.Store(true)
		hung := time.Now()
		b.leads(t)
		assert.LessOrEqual(t, time.Since(hung), 2*time.Second+atOnce)
		require.ErrorIs(t, context.Cause(a.served.last().ctx), leader.ErrUnhealthy)
		require.ErrorContains(t, context.Cause(a.served.last().ctx), "did not return in time")
		asked := p.asked.Load()
		time.Sleep(10 * time.Minute) // six hundred checks that it does not ask for
		assert.Equal(t, asked, p.asked.Load(), "one at a time")
		b.stop()
		time.Sleep(time.Minute)
		assert.Len(t, a.served.all(), 1)

		p.hangs.Store(false)
		close(p.released) // the late answer is not worth anything: it asks again
		a.leads(t)
	})
}

func TestRunWaitsForACheckButTheTermDoesNot(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		p := newPatient()
		r := start(t, candidate(t, f, "a", leader.WithHealthCheck(p.check, 10*time.Minute)), untilTold)
		r.leads(t)
		p.hangs.Store(true)
		time.Sleep(11 * time.Minute)
		r.stop()
		assert.Zero(t, locked(f), "it was released at once")
		select {
		case <-r.ended:
			t.Error("Run has left something behind")
		default:
		}
		close(p.released)
		require.NoError(t, r.wait(t))
	})
}

func TestACheckThatPanicsCountsAsFailed(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		p := newPatient()
		r := start(t, candidate(t, f, "a", leader.WithHealthCheck(p.check, time.Second)), untilTold)
		r.leads(t)
		p.panics.Store(true)
		<-r.served.last().ctx.Done()
		cause := context.Cause(r.served.last().ctx)
		require.ErrorIs(t, cause, leader.ErrUnhealthy)
		require.ErrorContains(t, cause, "health check panicked: no disk")
		p.panics.Store(false)
		r.leads(t)

		exits := candidate(t, f, "b", leader.WithHealthCheck(func(context.Context) error {
			runtime.Goexit()
			return nil
		}, time.Second))
		r = start(t, exits, untilTold)
		time.Sleep(time.Minute)
		r.stop()
		require.NoError(t, r.wait(t))
		assert.Empty(t, r.served.all())
	})
}

func TestACheckThatFailsWhileTheTermIsPublishedKeepsItFromBeginning(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		for i := range f.Len() {
			f.Delay(i, 20*time.Millisecond)
		}
		events := &journal{}
		e := candidate(t, f, "a", leader.WithHealthCheck(failsOnceElected(f), time.Millisecond), leader.WithObserver(events.note("a")))
		r := start(t, e, untilTold)
		time.Sleep(time.Minute)
		assert.Empty(t, r.served.all())
		assert.Empty(t, events.of(leader.Began))
		assert.Empty(t, events.of(leader.Ended))
	})
}

func TestWhoIsNotEligibleDoesNotStandAndWhoLeadsGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		var eligible atomic.Bool
		a := start(t, candidate(t, f, "a", leader.WithEligible(eligible.Load)), untilTold)
		time.Sleep(time.Minute)
		assert.Empty(t, a.served.all())
		eligible.Store(true)
		a.leads(t)
		eligible.Store(false)
		time.Sleep(time.Minute)
		require.NoError(t, a.served.last().ctx.Err(), "a sitting leader is not displaced")
		b := start(t, candidate(t, f, "b"), untilTold)
		f.Host("a").Partition()
		b.leads(t)
		f.Host("a").Heal()
		b.stop()
		time.Sleep(time.Minute)
		assert.Len(t, a.served.all(), 1)

		panics := candidate(t, f, "c", leader.WithEligible(func() bool { panic("oh") }))
		c := start(t, panics, untilTold)
		time.Sleep(time.Minute)
		assert.Empty(t, c.served.all())
	})
}

func TestWithALockerThatIsClosedAnUnfitCandidateEndsAsWell(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		locker := newLocker(t, f, "a")
		r := start(t, newElector(t, locker, leader.WithEligible(func() bool { return false })), untilTold)
		later := start(t, newElector(t, locker, leader.WithPriority(1)), untilTold)
		later.leads(t)
		third := start(t, newElector(t, locker, leader.WithPriority(1)), untilTold)
		time.Sleep(time.Minute)
		require.NoError(t, locker.Close())
		for _, r := range []*run{r, later, third} {
			require.ErrorIs(t, r.wait(t), redlock.ErrClosed)
		}
	})
}

func TestCandidatesStandInTheOrderOfTheirPriority(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		runs := map[int]*run{}
		electors := map[int]*leader.Elector{}
		for _, n := range []int{5, 2, 0, 1} {
			electors[n] = candidate(t, f, string(rune('a'+n)), leader.WithPriority(n), leader.WithResignPause(time.Hour))
			runs[n] = start(t, electors[n], untilTold)
			if n == 5 {
				runs[5].leads(t) // alone, it leads
			}
		}
		time.Sleep(time.Minute)
		assert.True(t, electors[5].IsLeader(), "nobody is displaced")
		now := 5
		for _, next := range []int{0, 1, 2} {
			resigned := time.Now()
			require.NoError(t, electors[now].Resign(t.Context()))
			runs[next].leads(t)
			late := time.Since(resigned)
			assert.GreaterOrEqual(t, late, time.Duration(next)*ttl/16)
			assert.LessOrEqual(t, late, time.Duration(next)*ttl/16+atOnce)
			now = next
		}
		// A crash: the order holds as well.
		time.Sleep(time.Minute)
		f.Host("c").Partition()
		crashed := time.Now()
		last := candidate(t, f, "z", leader.WithPriority(3))
		start(t, last, untilTold).leads(t)
		assert.LessOrEqual(t, time.Since(crashed), ttl+3*ttl/16+100*time.Millisecond)
	})
}

func answer(t *testing.T, e *leader.Elector) (int, map[string]any) {
	t.Helper()
	w := httptest.NewRecorder()
	e.Healthz().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/healthz", nil))
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	var body map[string]any
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &body))
	return w.Code, body
}

func TestHealthzIsUnhealthyWhereOneBelievesToLeadAndDoesNot(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		p := newPatient()
		e := candidate(t, f, "a", leader.WithHealthCheck(p.check, time.Second))
		code, body := answer(t, e)
		assert.Equal(t, http.StatusOK, code, "it does not run")
		assert.Equal(t, map[string]any{"name": name, "identity": "a", "leading": false}, body)

		p.sick.Store(true)
		hang := make(chan struct{})
		r := start(t, e, func(context.Context, leader.Term) error {
			<-hang
			return nil
		})
		time.Sleep(time.Minute)
		code, body = answer(t, e)
		assert.Equal(t, http.StatusOK, code, "who does not lead is healthy")
		assert.Contains(t, body["unfit"], "no disk")

		p.sick.Store(false)
		term := r.leads(t)
		for range 100 {
			time.Sleep(97 * time.Millisecond)
			code, body = answer(t, e)
			require.Equal(t, http.StatusOK, code)
			require.InDelta(t, float64(term.Number), body["term"], 0)
			require.Equal(t, true, body["leading"])
		}

		f.Partition()
		cut := time.Now()
		var unhealthyFrom time.Duration
		for time.Since(cut) < 2*ttl {
			time.Sleep(10 * time.Millisecond)
			code, body = answer(t, e)
			switch {
			case code == http.StatusOK:
				require.Zero(t, unhealthyFrom)
				require.True(t, e.IsLeader(), "while it is healthy")
			case unhealthyFrom == 0:
				unhealthyFrom = time.Since(cut)
				assert.Contains(t, body["problem"], "not extended for long")
			}
		}
		assert.Greater(t, unhealthyFrom, ttl/2, "one slow extension is no problem")
		assert.Less(t, unhealthyFrom, ttl)
		assert.Contains(t, body["problem"], "still runs")
		time.Sleep(leader.DefaultStopGrace)
		_, body = answer(t, e)
		assert.Equal(t, leader.ErrStuck.Error(), body["problem"])

		f.Heal()
		close(hang)
		r.leads(t) // the next term
		code, _ = answer(t, e)
		assert.Equal(t, http.StatusOK, code)
	})
}

func TestHealthzIsUnhealthyWhenAFunctionIsStuckThoughItsLeaseLasts(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		e := candidate(t, f, "a", leader.WithStopGrace(time.Second))
		hang := make(chan struct{})
		defer close(hang)
		start(t, e, func(context.Context, leader.Term) error {
			<-hang
			return nil
		}).leads(t)
		go func() { _ = e.Resign(t.Context()) }()
		time.Sleep(900 * time.Millisecond)
		code, _ := answer(t, e)
		assert.Equal(t, http.StatusOK, code, "it may take its time")
		time.Sleep(200 * time.Millisecond)
		code, body := answer(t, e)
		assert.Equal(t, http.StatusServiceUnavailable, code)
		assert.Equal(t, leader.ErrStuck.Error(), body["problem"])
	})
}
