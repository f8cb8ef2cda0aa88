package leader_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

func TestOneOfManyCandidatesLeads(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		var electors []*leader.Elector
		var runs []*run
		for _, host := range []string{"a", "b", "c"} {
			electors = append(electors, candidate(t, f, host))
			runs = append(runs, start(t, electors[len(electors)-1], untilTold))
		}
		time.Sleep(10 * time.Minute)
		leaders, terms := 0, 0
		for i, e := range electors {
			terms += len(runs[i].served.all())
			if e.IsLeader() {
				leaders++
			}
		}
		assert.Equal(t, 1, leaders)
		assert.Equal(t, 1, terms, "nothing ended the first term")
	})
}

func TestTheFunctionIsGivenItsTermAndLease(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		type key struct{}
		began := time.Now()
		e := candidate(t, f, "a")
		r := startIn(context.WithValue(t.Context(), key{}, "value"), t, e, untilTold)
		term := r.leads(t)
		ctx := r.served.last().ctx

		lease, ok := redlock.LeaseFrom(ctx)
		require.True(t, ok)
		assert.Equal(t, "value", ctx.Value(key{}), "it has the values of Run's context")
		assertTerm(t, leader.Term{Name: name, Number: lease.Token(), Leader: "a", Since: term.Since}, term)
		assert.WithinDuration(t, began, term.Since, time.Second)
		assert.Equal(t, time.UTC, term.Since.Location())
	})
}

func TestTermsStrictlyIncreaseWhateverTheClocksSay(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		terms := make(chan leader.Term, 1000)
		for host, wrong := range map[string]time.Duration{"a": 10 * time.Minute, "b": -10 * time.Minute, "c": 0} {
			c := newClock()
			c.wrong = wrong
			e := newElector(t, newLocker(t, f, host, redlock.WithClock(c)), leader.WithResignPause(100*time.Millisecond))
			round := 0
			start(t, e, func(ctx context.Context, term leader.Term) error {
				terms <- term
				time.Sleep(50 * time.Millisecond)
				switch round++; round % 3 {
				case 0:
					return nil
				case 1:
					return errors.New("failed")
				}
				return e.Resign(ctx)
			})
		}
		time.Sleep(20 * time.Second)
		var last leader.Term
		seen := map[string]int{}
		for len(terms) > 0 {
			term := <-terms
			assert.Greater(t, term.Number, last.Number, "%+v follows %+v", term, last)
			last = term
			seen[term.Leader]++
		}
		assert.Len(t, seen, 3, "each led at times: %v", seen)
	})
}

func TestAFunctionThatReturnsNilStepsDownAndIsACandidateAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		r := start(t, candidate(t, f, "a"), func(context.Context, leader.Term) error {
			time.Sleep(time.Second)
			return nil
		})
		first, second := r.leads(t), r.leads(t)
		assert.Greater(t, second.Number, first.Number)
		all := r.served.all()
		assert.WithinDuration(t, all[0].to, all[1].from, atOnce)
	})
}

func TestTermsThatEndAtOnceDoNotBeginOftenerThanEvery32ndOfTheTTL(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		r := start(t, candidate(t, f, "a"), func(context.Context, leader.Term) error { return nil })
		time.Sleep(ttl)
		assert.InDelta(t, 32, len(r.served.all()), 1)
	})
}

func TestAnErrorOfItsOwnAccordIsLoggedThoughItSpeaksOfACancelledContext(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		logs := newLogs()
		fails := true
		r := start(t, candidate(t, f, "a", leader.WithLogger(logs.logger())), func(ctx context.Context, term leader.Term) error {
			if fails {
				fails = false
				return fmt.Errorf("query: %w", context.Canceled)
			}
			return untilTold(ctx, term)
		})
		r.leads(t)
		r.leads(t)
		r.stop()
		require.NoError(t, r.wait(t))
		assert.Len(t, logs.having("level=ERROR"), 1, "the echo of the context's end is no error")
		assert.Len(t, logs.having("query: context canceled"), 1)
	})
}

func TestAFailedLeaderStandsBackWithBackoffAndAnotherLeads(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		logs := newLogs()
		fails := start(t, candidate(t, f, "fails", leader.WithLogger(logs.logger())), func(context.Context, leader.Term) error {
			time.Sleep(time.Second)
			return errors.New("the database is gone")
		})
		fails.leads(t)
		works := start(t, candidate(t, f, "works"), untilTold)
		works.leads(t)
		assert.WithinDuration(t, fails.served.last().to, works.served.last().from, atOnce)
		assert.Len(t, logs.having("the database is gone"), 1)
		works.stop()
		require.NoError(t, works.wait(t))

		for range 12 {
			fails.leads(t)
		}
		all := fails.served.all()[1:]
		var pauses []time.Duration
		for i := range all[1:] {
			pauses = append(pauses, all[i+1].from.Sub(all[i].to))
		}
		assert.GreaterOrEqual(t, pauses[0], ttl/16)
		assert.Greater(t, pauses[len(pauses)-1], ttl, "it grows: %v", pauses)
		for _, p := range pauses {
			assert.LessOrEqual(t, p, 6*ttl+atOnce, "and is bounded")
		}
	})
}

func TestAPanicBecomesAnErrorWithTheStackAndFreesTheLease(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		logs := newLogs()
		panics := start(t, candidate(t, f, "panics", leader.WithLogger(logs.logger())), func(context.Context, leader.Term) error {
			time.Sleep(time.Second)
			panic("out of cheese")
		})
		panics.leads(t)
		works := start(t, candidate(t, f, "works"), untilTold)
		works.leads(t)
		assert.WithinDuration(t, panics.served.last().to, works.served.last().from, atOnce)
		entries := logs.having("out of cheese")
		require.Len(t, entries, 1)
		assert.Contains(t, entries[0], "election_test.go", "the stack says where")
		works.stop()
		panics.leads(t) // and so Run goes on
	})
}

func TestAFunctionThatEndsItsGoroutineLeavesNothingHeld(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		e := candidate(t, f, "a")
		r := start(t, e, func(context.Context, leader.Term) error {
			runtime.Goexit() // as t.FailNow does
			return nil
		})
		<-r.ended
		assert.Zero(t, locked(f))
		assert.False(t, e.IsLeader())
		start(t, e, untilTold).leads(t)
	})
}

func TestResignHandsOverToAnotherCandidate(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		const winding = 100 * time.Millisecond
		slowly := func(ctx context.Context, _ leader.Term) error {
			<-ctx.Done()
			time.Sleep(winding)
			return nil
		}
		a, b := candidate(t, f, "a"), candidate(t, f, "b")
		first := start(t, a, slowly)
		first.leads(t)
		second := start(t, b, slowly)
		for range 5 {
			time.Sleep(10 * time.Second)
			began := time.Now()
			require.NoError(t, a.Resign(t.Context()))
			assert.Equal(t, winding, time.Since(began), "it waits for the function and the release")
			assert.False(t, a.IsLeader())
			require.ErrorIs(t, context.Cause(first.served.last().ctx), leader.ErrResigned)

			second.leads(t)
			assert.LessOrEqual(t, time.Since(began), winding+atOnce)
			time.Sleep(time.Minute)
			assert.True(t, b.IsLeader())
			a, b, first, second = b, a, second, first
		}
	})
}

func TestAfterResignTheElectorStandsBackForItsPause(t *testing.T) {
	for _, c := range []struct {
		opts  []leader.Option
		pause time.Duration
	}{
		{nil, ttl},
		{[]leader.Option{leader.WithResignPause(time.Minute)}, time.Minute},
		{[]leader.Option{leader.WithResignPause(0)}, 0},
	} {
		inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
			e := candidate(t, f, "a", c.opts...)
			r := start(t, e, untilTold)
			r.leads(t)
			require.NoError(t, e.Resign(t.Context()))
			resigned := time.Now()
			r.leads(t) // there is nobody else
			assert.InDelta(t, c.pause, time.Since(resigned), float64(atOnce))
		})
	}
}

func TestResignIsBoundedByItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		e := candidate(t, f, "a")
		r := start(t, e, func(ctx context.Context, _ leader.Term) error {
			<-ctx.Done()
			time.Sleep(2 * time.Second)
			return nil
		})
		r.leads(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := e.Resign(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, `resign "billing"`)
		assert.Equal(t, 3, locked(f), "the function still runs")
		require.NoError(t, e.Resign(t.Context()), "a second call waits for the same end")
		assert.Zero(t, locked(f))
	})
}

func TestALeaderMayResignFromWithin(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		e := candidate(t, f, "a")
		answers := make(chan error, 10)
		r := start(t, e, func(ctx context.Context, term leader.Term) error {
			child, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			answers <- e.Resign(child)
			return untilTold(ctx, term)
		})
		r.leads(t)
		require.NoError(t, <-answers)
		assert.Zero(t, locked(f))
		ended := r.served.last()
		require.ErrorIs(t, context.Cause(ended.ctx), leader.ErrResigned)
		r.leads(t)
		assert.InDelta(t, ttl, r.served.last().from.Sub(ended.to), float64(atOnce))
	})
}

func TestResignWithoutLeadingIsAnError(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		a, b := candidate(t, f, "a"), candidate(t, f, "b")
		require.ErrorIs(t, a.Resign(t.Context()), leader.ErrNotLeader, "it does not run")
		r := start(t, a, untilTold)
		r.leads(t)
		start(t, b, untilTold)
		synctest.Wait()
		require.ErrorIs(t, b.Resign(t.Context()), leader.ErrNotLeader, "it is a candidate")
		require.NoError(t, a.Resign(t.Context()))
		require.ErrorIs(t, a.Resign(t.Context()), leader.ErrNotLeader, "it has resigned")
	})
}

func TestRunDrainsWhenItsContextEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		shutdown := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		e := candidate(t, f, "a")
		r := startIn(ctx, t, e, func(ctx context.Context, _ leader.Term) error {
			<-ctx.Done()
			time.Sleep(20 * time.Second) // many TTLs
			return errors.New("too late")
		})
		r.leads(t)
		cancel(shutdown)
		told := time.Now()
		time.Sleep(19 * time.Second)
		assert.Equal(t, 3, locked(f))
		assert.True(t, e.IsLeader(), "nobody else can lead while it winds down")
		require.ErrorIs(t, context.Cause(r.served.last().ctx), shutdown)

		require.NoError(t, r.wait(t), "this is how Run is told to stop")
		assert.Equal(t, 20*time.Second, time.Since(told))
		assert.Zero(t, locked(f))
		assert.False(t, e.IsLeader())
	})
}

func TestRunReturnsAtOnceWhereverItsContextEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		over, cancel := context.WithCancel(t.Context())
		cancel()
		a, b := candidate(t, f, "a"), candidate(t, f, "b", leader.WithResignPause(time.Hour))
		never := startIn(over, t, a, untilTold)
		require.NoError(t, never.wait(t))
		assert.Empty(t, never.served.all(), "nobody led")

		standing := start(t, b, untilTold)
		standing.leads(t)
		require.NoError(t, b.Resign(t.Context()))
		leading := start(t, a, untilTold)
		leading.leads(t)
		waiting := start(t, candidate(t, f, "c"), untilTold)
		time.Sleep(time.Minute)
		for _, r := range []*run{standing, waiting, leading} {
			told := time.Now()
			r.stop()
			require.NoError(t, r.wait(t))
			assert.Less(t, time.Since(told), atOnce)
		}
		assert.Zero(t, locked(f))
		assert.Empty(t, waiting.served.all())
	})
}

func TestRunReturnsWhenTheLockerIsClosed(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		lockers := []*redlock.Locker{newLocker(t, f, "a"), newLocker(t, f, "b")}
		leading := start(t, newElector(t, lockers[0]), untilTold)
		leading.leads(t)
		waiting := start(t, newElector(t, lockers[1]), untilTold)
		time.Sleep(time.Minute)
		for i, r := range []*run{leading, waiting} {
			go func() { _ = lockers[i].Close() }()
			err := r.wait(t)
			require.ErrorIs(t, err, redlock.ErrClosed)
			require.ErrorContains(t, err, `leader: run "billing"`)
		}
		require.ErrorIs(t, context.Cause(leading.served.last().ctx), redlock.ErrClosed)
		assert.Empty(t, waiting.served.all())
	})
}

func TestOnlyOneRunAtATime(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		e := candidate(t, f, "a")
		r := start(t, e, untilTold)
		r.leads(t)
		require.ErrorIs(t, e.Run(t.Context(), untilTold), leader.ErrRunning)
		assert.True(t, e.IsLeader(), "the first goes on")
		r.stop()
		require.NoError(t, r.wait(t))
		start(t, e, untilTold).leads(t)
	})
}

func TestTwoCandidatesInOneProcessTakeTurns(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		locker := newLocker(t, f, "host")
		a, b := newElector(t, locker, leader.WithIdentity("a")), newElector(t, locker, leader.WithIdentity("b"))
		first := start(t, a, untilTold)
		assert.Equal(t, "a", first.leads(t).Leader)
		second := start(t, b, untilTold)
		time.Sleep(time.Minute)
		assert.False(t, b.IsLeader())
		require.NoError(t, a.Resign(t.Context()))
		assert.Equal(t, "b", second.leads(t).Leader)
	})
}

func TestATermIsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		e := candidate(t, f, "a", leader.WithMaxTerm(10*time.Minute))
		r := start(t, e, untilTold)
		r.leads(t)
		r.leads(t)
		all := r.served.all()
		require.ErrorIs(t, context.Cause(all[0].ctx), leader.ErrTermLimit)
		require.ErrorContains(t, context.Cause(all[0].ctx), "10m0s")
		assert.Equal(t, 10*time.Minute, all[0].to.Sub(all[0].from))
		assert.Less(t, all[1].from.Sub(all[0].to), atOnce, "the lease was released, and the election is open")
	})
}

// A leader that is stuck holds the office no longer than its term, its grace and a TTL or two.
func TestATermThatIsNotEndedByItsFunctionEndsWithItsLease(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		hang := make(chan struct{})
		defer close(hang)
		stuck := start(t, candidate(t, f, "stuck", leader.WithMaxTerm(time.Minute), leader.WithStopGrace(10*time.Second)), func(context.Context, leader.Term) error {
			<-hang
			return nil
		})
		stuck.leads(t)
		successor := start(t, candidate(t, f, "successor"), untilTold)
		successor.leads(t)
		held := time.Since(stuck.served.last().from)
		assert.GreaterOrEqual(t, held, time.Minute+10*time.Second)
		assert.LessOrEqual(t, held, time.Minute+10*time.Second+2*ttl)
	})
}

func TestTheMarginEndsTheContextBeforeTheValidity(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		const margin = time.Second
		e := candidate(t, f, "a", leader.WithMargin(margin))
		r := start(t, e, func(ctx context.Context, _ leader.Term) error {
			f.Host("a").Partition()
			<-ctx.Done()
			f.Host("a").Heal()
			if lease, _ := redlock.LeaseFrom(ctx); errors.Is(lease.Err(), redlock.ErrLeaseExpired) {
				assert.InDelta(t, margin, lease.Remaining(), float64(5*time.Millisecond))
				assert.False(t, e.IsLeader())
			}
			return nil
		})
		r.leads(t)
		r.leads(t)
		assert.ErrorIs(t, context.Cause(r.served.all()[0].ctx), redlock.ErrLeaseExpired)
	})
}

func TestTheLockersLeaseDefaultsDoNotMixWithATerms(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		locker := newLocker(t, f, "a",
			redlock.WithTTL(8*time.Second), redlock.WithMinValidity(7*time.Second), redlock.WithMargin(2*time.Second),
			redlock.WithMaxAttempts(1), redlock.WithMaxExtensions(0), redlock.WithAutoExtend(false))
		first := start(t, candidate(t, f, "b"), untilTold)
		first.leads(t)
		r := start(t, newElector(t, locker), untilTold)
		time.Sleep(time.Minute) // many attempts
		first.stop()
		r.leads(t)
		time.Sleep(10 * time.Minute) // many extensions
		assert.Len(t, r.served.all(), 1)
	})
}
