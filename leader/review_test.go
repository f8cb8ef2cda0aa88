package leader_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

// A lock without a time to live, as somebody sets by hand, gives no time to come back at.
func TestACandidateThatStandsLaterAsksSeldomForALockThatNeverExpires(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		for _, c := range f.Clients() {
			require.NoError(t, c.Set(t.Context(), redlock.DefaultKeyPrefix+name, "by hand", 0).Err())
		}
		r := start(t, candidate(t, f, "a", leader.WithPriority(1)), untilTold)
		time.Sleep(time.Minute)
		before := f.Commands(0)
		const while = 10 * time.Minute
		time.Sleep(while)
		assert.LessOrEqual(t, float64(f.Commands(0)-before), 1.1*float64(while/(ttl/2)+while/(3*time.Second)), "twice in a TTL, and the sign of life of a subscription")
		for _, c := range f.Clients() {
			require.NoError(t, c.Del(t.Context(), redlock.DefaultKeyPrefix+name).Err())
		}
		r.leads(t)
	})
}

// The heir's time and the steps of those who stand later pass at once, not one after the other.
func TestAnHeirThatIsDeadDelaysThoseWhoStandLaterForNoLongerThanOthers(t *testing.T) {
	for _, c := range []struct {
		priority int
		within   time.Duration
	}{{0, ttl / 4}, {1, ttl / 4}, {3, ttl / 4}, {4, ttl / 4}, {8, ttl / 2}, {leader.MaxPriority, leader.MaxPriority * ttl / 16}} {
		inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
			e := candidate(t, f, "a", leader.WithResignPause(time.Hour))
			start(t, e, untilTold).leads(t)
			events := &journal{}
			later := start(t, candidate(t, f, "b", leader.WithPriority(c.priority), leader.WithObserver(events.note("b"))), untilTold)
			time.Sleep(time.Minute)
			named := time.Now()
			go func() { _ = e.Transfer(t.Context(), "dead") }()
			later.leads(t)
			assert.GreaterOrEqual(t, time.Since(named), ttl/4, "priority %d: the heir had its time", c.priority)
			assert.LessOrEqual(t, time.Since(named), c.within+2*atOnce, "priority %d", c.priority)
			if c.priority > 0 {
				assert.Empty(t, events.of(leader.StoodBack), "it need not win to know that it gives way")
			}
		})
	}
}

func TestACandidateThatStandsLaterEndsAtOnceWithTheLocker(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		start(t, candidate(t, f, "a"), untilTold).leads(t)
		locker := newLocker(t, f, "b")
		r := start(t, newElector(t, locker, leader.WithPriority(1)), untilTold)
		time.Sleep(time.Minute + ttl/4) // between two looks
		closed := time.Now()
		require.NoError(t, locker.Close())
		require.ErrorIs(t, r.wait(t), redlock.ErrClosed)
		assert.Less(t, time.Since(closed), atOnce)
	})
}

func TestTwoWhoStandLaterInOneProcessTakeTurns(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		locker := newLocker(t, f, "b")
		var electors []*leader.Elector
		for range 2 {
			e := newElector(t, locker, leader.WithPriority(1))
			electors = append(electors, e)
			start(t, e, untilTold)
		}
		for range 10 {
			time.Sleep(time.Minute)
			a, b := electors[0].IsLeader(), electors[1].IsLeader()
			require.NotEqual(t, a, b)
			for _, e := range electors {
				if e.IsLeader() {
					require.NoError(t, e.Resign(t.Context()))
				}
			}
		}
	})
}

func TestAnObserverThatEndsItsGoroutineLeavesNobodyWaiting(t *testing.T) {
	for _, kind := range []leader.EventKind{leader.Began, leader.Ended} {
		inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
			e := candidate(t, f, "a", leader.WithObserver(func(ev leader.Event) {
				if ev.Kind == kind {
					runtime.Goexit()
				}
			}))
			r := start(t, e, untilTold)
			if kind == leader.Ended {
				r.leads(t)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				require.NoError(t, e.Resign(ctx))
			}
			<-r.ended
			assert.Zero(t, locked(f))
			assert.False(t, e.IsLeader())
		})
	}
}

// Whoever is told may ask.
func TestAnObserverMayCallTheElector(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		var e *leader.Elector
		kinds := map[leader.EventKind]int{}
		hang := make(chan struct{})
		e = candidate(t, f, "a", leader.WithStopGrace(time.Second), leader.WithObserver(func(ev leader.Event) {
			kinds[ev.Kind]++
			assert.Equal(t, ev.Kind == leader.Began || ev.Kind == leader.Stuck, e.IsLeader(), ev.Kind)
			code, _ := answer(t, e)
			assert.Equal(t, ev.Kind == leader.Stuck, code != 200, ev.Kind)
			_, err := e.Leader(t.Context())
			assert.Equal(t, ev.Kind == leader.Ended, err != nil, ev.Kind)
			if ev.Kind == leader.Ended {
				for _, err := range []error{
					e.Resign(t.Context()), e.Transfer(t.Context(), "b"), ev.Term.Save(t.Context(), []byte("late")),
				} {
					assert.ErrorIs(t, err, leader.ErrNotLeader)
				}
			}
		}))
		r := start(t, e, func(context.Context, leader.Term) error {
			<-hang
			return nil
		})
		r.leads(t)
		go func() { _ = e.Resign(t.Context()) }()
		time.Sleep(time.Minute)
		close(hang)
		r.stop()
		require.NoError(t, r.wait(t))
		assert.Equal(t, map[leader.EventKind]int{leader.Began: 1, leader.Stuck: 1, leader.Ended: 1}, kinds)
	})
}

func TestAnEligibilityThatEndsItsGoroutineCountsAsNo(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		var exits atomic.Bool
		e := candidate(t, f, "a", leader.WithEligible(func() bool {
			if exits.Load() {
				runtime.Goexit()
			}
			return true
		}))
		r := start(t, e, untilTold)
		r.leads(t)
		exits.Store(true)
		time.Sleep(time.Minute)
		require.True(t, e.IsLeader(), "a sitting leader is not displaced")
		require.NoError(t, e.Resign(t.Context()))
		time.Sleep(time.Minute)
		assert.Len(t, r.served.all(), 1)
		exits.Store(false)
		r.leads(t)
	})
}

func TestRunAsksForNoHealthOnceItWasToldToStop(t *testing.T) {
	for range 20 {
		inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
			p := newPatient()
			r := start(t, candidate(t, f, "a", leader.WithHealthCheck(p.check, time.Second)), untilTold)
			r.leads(t)
			p.hangs.Store(true)
			time.Sleep(10 * time.Second)
			asked := p.asked.Load()
			r.stop()
			time.Sleep(time.Second)
			close(p.released)
			require.NoError(t, r.wait(t))
			require.Equal(t, asked, p.asked.Load())
		})
	}
}

// Who stands back after a resignation does so that others can win, and not when it is named itself.
func TestAnHeirThatHasJustResignedTakesOver(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		a, b := candidate(t, f, "a"), candidate(t, f, "b")
		first := start(t, a, untilTold)
		first.leads(t)
		second := start(t, b, untilTold)
		third := start(t, candidate(t, f, "c"), untilTold)
		time.Sleep(time.Minute)
		began := time.Now()
		for range 5 { // there and back
			require.NoError(t, a.Transfer(t.Context(), "b"))
			second.leads(t)
			require.NoError(t, b.Transfer(t.Context(), "a"))
			first.leads(t)
		}
		assert.Less(t, time.Since(began), 10*atOnce)
		assert.Empty(t, third.served.all())
	})
}

// What a function has left behind speaks of its own term, and not of the one that runs by now.
func TestWhoseTermIsOverCannotEndTheNextOne(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		e := candidate(t, f, "a", leader.WithResignPause(0))
		r := start(t, e, untilTold)
		r.leads(t)
		old := context.WithoutCancel(r.served.last().ctx)
		require.NoError(t, e.Resign(t.Context()))
		r.leads(t)
		require.ErrorIs(t, e.Resign(old), leader.ErrNotLeader)
		require.ErrorIs(t, e.Transfer(old, "b"), leader.ErrNotLeader)
		require.True(t, e.IsLeader())
		require.NoError(t, r.served.last().ctx.Err())
	})
}

func TestALeaderWithinALeaderMayEndEitherTerm(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		locker := newLocker(t, f, "a")
		outer := newElector(t, locker)
		inner, err := leader.New(locker, "within", leader.WithTTL(ttl), leader.WithLogger(quiet))
		require.NoError(t, err)
		answers := make(chan error, 2)
		var once sync.Once
		start(t, outer, func(ctx context.Context, _ leader.Term) error {
			return inner.Run(ctx, func(ctx context.Context, term leader.Term) error {
				once.Do(func() {
					answers <- inner.Resign(ctx)
					answers <- outer.Resign(context.WithoutCancel(ctx)) // does not wait for itself
				})
				return untilTold(ctx, term)
			})
		}).leads(t)
		require.NoError(t, <-answers)
		require.NoError(t, <-answers)
	})
}

func TestOfTwoTransfersAtOnceOneIsCarriedOut(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		e := candidate(t, f, "a")
		start(t, e, func(ctx context.Context, _ leader.Term) error {
			<-ctx.Done()
			time.Sleep(atOnce) // both find it there
			return nil
		}).leads(t)
		for _, host := range []string{"b", "c", "d"} {
			start(t, candidate(t, f, host), untilTold)
		}
		time.Sleep(time.Minute)
		var all sync.WaitGroup
		errs := make([]error, 2)
		for i, heir := range []string{"b", "c"} {
			all.Go(func() { errs[i] = e.Transfer(t.Context(), heir) })
		}
		all.Wait()
		if errs[0] != nil {
			errs[0], errs[1] = errs[1], errs[0]
		}
		require.NoError(t, errs[0])
		require.ErrorIs(t, errs[1], leader.ErrHeirAbsent)
	})
}

func TestAnHeirThatIsUnhealthyOrNotEligibleDelaysNobodyForLong(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		p := newPatient()
		p.sick.Store(true)
		a, b := candidate(t, f, "a"), candidate(t, f, "b")
		start(t, a, untilTold).leads(t)
		start(t, b, untilTold)
		sick := start(t, candidate(t, f, "sick", leader.WithHealthCheck(p.check, 0)), untilTold)
		barred := start(t, candidate(t, f, "barred", leader.WithEligible(func() bool { return false })), untilTold)
		now, next := a, b
		for _, heir := range []string{"sick", "barred", "sick"} {
			time.Sleep(time.Minute)
			named := time.Now()
			require.ErrorIs(t, now.Transfer(t.Context(), heir), leader.ErrHeirAbsent)
			assert.InDelta(t, ttl/4, time.Since(named), float64(5*atOnce))
			require.True(t, next.IsLeader())
			now, next = next, now
		}
		assert.Empty(t, append(sick.served.all(), barred.served.all()...))
	})
}

// A gate is what a resource does to be safe: it refuses what comes with an older number than it has
// seen.
type gate struct {
	mu      sync.Mutex
	highest redlock.Token
	written []string
}

func (g *gate) write(number redlock.Token, what string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if number < g.highest {
		return false
	}
	g.highest = number
	g.written = append(g.written, what)
	return true
}

// The case that no lease can prevent: a leader stands still in the middle of a write, another leads,
// and the write goes on.
func TestTheWriteOfALeaderThatStoodStillIsRefusedWhileItsSuccessorLeads(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		c, resource := newClock(), &gate{}
		frozen := newElector(t, newLocker(t, f, "frozen", redlock.WithClock(c)))
		wakes, wrote := make(chan struct{}), make(chan bool)
		old := start(t, frozen, func(ctx context.Context, term leader.Term) error {
			assert.True(t, resource.write(term.Number, "old"))
			may := ctx.Err() == nil
			assert.True(t, may, "it finds")
			<-wakes
			wrote <- resource.write(term.Number, "stale")
			return context.Cause(ctx)
		})
		before := old.leads(t)
		time.Sleep(time.Minute)
		f.Host("frozen").Partition() // no packet of it goes out
		next := candidate(t, f, "next")
		after := start(t, next, func(ctx context.Context, term leader.Term) error {
			assert.True(t, resource.write(term.Number, "new"))
			return untilTold(ctx, term)
		}).leads(t)
		require.Greater(t, after.Number, before.Number)
		synctest.Wait()
		f.Host("frozen").Heal()
		close(wakes)
		require.False(t, <-wrote, "the number stops it")
		require.True(t, next.IsLeader())
		require.False(t, frozen.IsLeader())
		require.Equal(t, []string{"old", "new"}, resource.written)
		require.True(t, resource.write(after.Number, "new again"), "and who leads goes on")
	})
}
