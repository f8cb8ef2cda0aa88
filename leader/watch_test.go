package leader_test

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

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

// A watcher is a Watch that goes on in the background.
type watcher struct {
	terms chan leader.Term
	stop  context.CancelFunc
	ended chan struct{}
}

func watch(t *testing.T, e *leader.Elector) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &watcher{terms: make(chan leader.Term, 10_000), stop: cancel, ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		for term := range e.Watch(ctx) {
			w.terms <- term
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-w.ended
	})
	return w
}

func (w *watcher) next(t *testing.T) leader.Term {
	t.Helper()
	select {
	case term := <-w.terms:
		return term
	case <-time.After(time.Hour):
		t.Fatal("nothing was yielded within an hour")
		return leader.Term{}
	}
}

// nextTerm is the next that is no vacancy.
func (w *watcher) nextTerm(t *testing.T) leader.Term {
	t.Helper()
	for {
		if term := w.next(t); term.Number != 0 {
			return term
		}
	}
}

// rest is what was yielded and not looked at, once all that is on its way has arrived.
func (w *watcher) rest() []leader.Term {
	synctest.Wait()
	var terms []leader.Term
	for len(w.terms) > 0 {
		terms = append(terms, <-w.terms)
	}
	return terms
}

func TestWatchYieldsEachLeaderInOrderToCandidatesAndOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		a, b, observer := candidate(t, f, "a"), candidate(t, f, "b"), candidate(t, f, "observer")
		var watchers []*watcher
		for _, e := range []*leader.Elector{a, b, observer, observer} {
			w := watch(t, e)
			assertTerm(t, leader.Term{Name: name}, w.next(t))
			watchers = append(watchers, w)
		}
		runs := map[*leader.Elector]*run{a: start(t, a, untilTold)}
		now, next := a, b
		hasty := watch(t, observer)
		assertTerm(t, runs[a].leads(t), hasty.nextTerm(t))
		runs[b] = start(t, b, untilTold)
		for range 6 {
			time.Sleep(time.Minute)
			term := runs[now].served.last().term
			for _, w := range watchers {
				yielded := w.rest()
				require.NotEmpty(t, yielded)
				assertTerm(t, term, yielded[len(yielded)-1])
				require.LessOrEqual(t, len(yielded), 2, "perhaps the vacancy, and the term")
			}
			changed := time.Now()
			require.NoError(t, now.Resign(t.Context()))
			term = runs[next].leads(t)
			assertTerm(t, term, hasty.nextTerm(t))
			assert.Less(t, time.Since(changed), atOnce, "it was told, and did not find out by and by")
			now, next = next, now
		}
	})
}

func TestWatchYieldsAVacancyThatLasts(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		w := watch(t, candidate(t, f, "observer"))
		assert.Zero(t, w.next(t).Number)
		for _, crash := range []bool{false, true, false} {
			r := start(t, candidate(t, f, "a"), untilTold)
			assertTerm(t, r.leads(t), w.next(t))
			time.Sleep(time.Minute)
			ended := time.Now()
			if crash {
				f.Host("a").Partition()
			}
			r.stop()
			assert.Zero(t, w.next(t).Number)
			if crash {
				assert.GreaterOrEqual(t, time.Since(ended), ttl*2/3, "its lock was there")
				assert.LessOrEqual(t, time.Since(ended), 4*ttl)
				f.Host("a").Heal()
			} else {
				assert.Less(t, time.Since(ended), atOnce)
			}
			require.NoError(t, r.wait(t))
			time.Sleep(10 * time.Minute)
			assert.Empty(t, w.rest(), "once")
		}
	})
}

func TestWatchFindsChangesThoughNothingIsPublished(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		a, b := candidate(t, f, "a"), candidate(t, f, "b")
		first := start(t, a, untilTold)
		term := first.leads(t)
		w := watch(t, candidate(t, f, "observer"))
		assertTerm(t, term, w.next(t))
		second := start(t, b, untilTold)
		time.Sleep(time.Minute)
		f.Host("observer").Partition() // deaf
		first.stop()
		term = second.leads(t)
		f.Host("observer").Heal()
		healed := time.Now()
		assertTerm(t, term, w.nextTerm(t))
		assert.LessOrEqual(t, time.Since(healed), ttl)
	})
}

func TestWatchYieldsNothingWhileAMinorityIsAllThatAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := redlocktest.Start(t, 5)
		first := start(t, candidate(t, f, "a"), untilTold)
		term := first.leads(t)
		w := watch(t, candidate(t, f, "observer"))
		assertTerm(t, term, w.next(t))
		second := start(t, candidate(t, f, "b"), untilTold)
		time.Sleep(time.Minute)

		// The watcher is left with two nodes, on which the old leader is all there is.
		f.Host("observer").Partition(2, 3, 4)
		f.Host("b").Partition(0, 1)
		f.Host("a").Partition()
		term = second.leads(t)
		time.Sleep(5 * time.Minute)
		assert.Empty(t, w.rest(), "neither a term nor a vacancy")
		f.Host("observer").Heal()
		assertTerm(t, term, w.next(t))
	})
}

// A leader that is cut off, and is elected again under a new number; a node that restarts empty.
func TestWatchLetsNoNumberGoBackWhateverFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := redlocktest.Start(t, 5)
		var mu sync.Mutex
		began := map[redlock.Token]string{}
		for _, host := range []string{"a", "b", "c"} {
			start(t, candidate(t, f, host), func(ctx context.Context, term leader.Term) error {
				mu.Lock()
				began[term.Number] = term.Leader
				mu.Unlock()
				return untilTold(ctx, term)
			})
		}
		watchers := []*watcher{watch(t, candidate(t, f, "x")), watch(t, candidate(t, f, "y"))}
		for i := range 40 {
			host := string(rune('a' + i%3))
			time.Sleep(10 * time.Second)
			switch i % 4 {
			case 0:
				f.Host(host).Partition()
			case 1:
				f.RestartEmpty(i % 5)
			case 2:
				f.Host("x").Partition(i%5, (i+1)%5)
				f.Hang((i + 2) % 5)
			case 3:
				for j := range 5 {
					f.Resume(j)
				}
				for _, host := range []string{"a", "b", "c", "x"} {
					f.Host(host).Heal()
				}
			}
		}
		for i, w := range watchers {
			var last redlock.Token
			terms := 0
			for _, term := range w.rest() {
				if term.Number == 0 {
					continue
				}
				terms++
				require.Greater(t, term.Number, last, "watcher %d", i)
				last = term.Number
				mu.Lock()
				require.Equal(t, began[term.Number], term.Leader)
				mu.Unlock()
			}
			assert.Greater(t, terms, 3)
		}
	})
}

func TestWatchIsNotMisledByLocksThatVanish(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		r := start(t, candidate(t, f, "a"), untilTold)
		term := r.leads(t)
		w := watch(t, candidate(t, f, "observer"))
		assertTerm(t, term, w.next(t))
		for i := range 30 {
			time.Sleep(7 * time.Second / 3)
			require.NoError(t, f.Clients()[i%3].Del(t.Context(), redlock.DefaultKeyPrefix+name).Err())
			if i%10 == 9 {
				f.RestartEmpty((i + 1) % 3)
			}
		}
		assert.Len(t, r.served.all(), 1)
		assert.Empty(t, w.rest())
	})
}

// A lease that is won, and a record that is only on its way to becoming a term's, are none.
func TestWatchInventsNoTerm(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		e := candidate(t, f, "observer")
		w := watch(t, e)
		assert.Zero(t, w.next(t).Number)
		lease, err := newLocker(t, f, "b").Acquire(t.Context(), name, redlock.WithAutoExtend(true))
		require.NoError(t, err)
		for _, state := range []string{"no record", "{}", `{"lease":"x","number":5}`} {
			require.NoError(t, lease.Publish(t.Context(), []byte(state)))
			time.Sleep(time.Minute)
		}
		assert.Empty(t, w.rest())

		// One that is on file, but whose function is not called.
		require.NoError(t, lease.Release(t.Context()))
		for i := range f.Len() {
			f.Delay(i, 20*time.Millisecond)
		}
		r := start(t, candidate(t, f, "sick", leader.WithHealthCheck(failsOnceElected(f), time.Millisecond)), untilTold)
		time.Sleep(time.Minute)
		assert.Empty(t, r.served.all())
		assert.Empty(t, w.rest())
	})
}

// failsOnceElected is a health check that fails from when a term is on record on.
func failsOnceElected(f *redlocktest.Fleet) func(context.Context) error {
	return func(context.Context) error {
		for i := range f.Len() {
			if record, _ := f.Get(i, "{"+redlock.DefaultKeyPrefix+name+"}:fence"); strings.Contains(record, `"elected"`) {
				return fmt.Errorf("node %d has it", i)
			}
		}
		return nil
	}
}

func TestWatchEndsWithItsContextTheLoopOrTheLocker(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		locker := newLocker(t, f, "a")
		e := newElector(t, locker)
		for term := range e.Watch(t.Context()) {
			assert.Zero(t, term.Number)
			break
		}
		w := watch(t, e)
		w.next(t)
		w.stop()
		<-w.ended
		w = watch(t, e)
		w.next(t)
		require.NoError(t, locker.Close())
		<-w.ended
		for range e.Watch(t.Context()) {
			t.Error("the Locker is closed")
		}
	})
}

func TestAWatcherCostsTheNodesLittle(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		w := watch(t, candidate(t, f, "observer"))
		w.next(t)
		time.Sleep(time.Minute)
		before := f.Commands(0)
		const while = 20 * time.Minute
		time.Sleep(while)
		assert.LessOrEqual(t, float64(f.Commands(0)-before), 1.1*float64(while/(ttl/2)+while/(3*time.Second)), "a look twice in a TTL, and the sign of life of a subscription")
	})
}
