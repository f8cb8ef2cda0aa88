package leader_test

import (
	"context"
	"errors"
	"slices"
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

// A journal keeps the events of some electors.
type journal struct {
	mu     sync.Mutex
	events []leader.Event
}

func (j *journal) note(string) func(leader.Event) {
	return func(ev leader.Event) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.events = append(j.events, ev)
	}
}

func (j *journal) all() []leader.Event {
	synctest.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]leader.Event(nil), j.events...)
}

func (j *journal) of(kind leader.EventKind) []leader.Event {
	var some []leader.Event
	for _, ev := range j.all() {
		if ev.Kind == kind {
			some = append(some, ev)
		}
	}
	return some
}

func TestEventsTellOfEachTermInOrder(t *testing.T) {
	for outcome, c := range endings {
		t.Run(outcome, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
				events := &journal{}
				locker := newLocker(t, f, "a")
				e := newElector(t, locker, append(c.opts, leader.WithObserver(events.note("a")))...)
				lead := c.lead
				if lead == nil {
					lead = untilTold
				}
				r := start(t, e, func(ctx context.Context, term leader.Term) error {
					began := events.all()
					assert.Equal(t, leader.Began, began[len(began)-1].Kind, "told before it is called")
					assert.Equal(t, term.Number, began[len(began)-1].Term.Number)
					return lead(ctx, term)
				})
				r.leads(t)
				if c.end != nil {
					c.end(t, f, locker, e, r)
				}
				time.Sleep(2 * ttl)
				r.stop()
				<-r.ended
				var last redlock.Token
				all := slices.DeleteFunc(events.all(), func(ev leader.Event) bool { return ev.Kind == leader.StoodBack })
				require.Zero(t, len(all)%2)
				for i := 0; i < len(all); i += 2 {
					began, ended := all[i], all[i+1]
					require.Equal(t, leader.Began, began.Kind)
					require.Equal(t, leader.Ended, ended.Kind)
					require.Equal(t, began.Term.Number, ended.Term.Number)
					require.Greater(t, began.Term.Number, last)
					require.Equal(t, name, began.Name)
					last = began.Term.Number
				}
				require.Equal(t, outcome, all[1].Outcome)
				if c.failed != "" {
					require.ErrorContains(t, all[1].Err, c.failed)
				}
			})
		})
	}
}

func TestNoEventTellsOfATermThatDidNotBegin(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		hook := &refuser{}
		hook.on.Store(true)
		clients := f.Host("a").Clients()
		for _, c := range clients {
			c.AddHook(hook)
		}
		locker, err := redlock.New(clients, redlock.WithClock(newClock()), redlock.WithLogger(quiet))
		require.NoError(t, err)
		defer locker.Close()
		events := &journal{}
		r := start(t, newElector(t, locker, leader.WithObserver(events.note("a"))), untilTold)
		time.Sleep(time.Minute)
		assert.Empty(t, events.all())
		r.stop()
		require.NoError(t, r.wait(t))
		assert.Empty(t, events.all())
	})
}

func TestAnObserverThatPanicsEndsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		logs := newLogs()
		e := candidate(t, f, "a", leader.WithLogger(logs.logger()), leader.WithObserver(func(leader.Event) { panic("oh") }))
		start(t, e, untilTold).leads(t)
		time.Sleep(time.Minute)
		assert.True(t, e.IsLeader())
		assert.Len(t, logs.having("the observer panicked"), 1)
	})
}

func TestAFunctionThatIgnoresItsContextIsReportedLoudly(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		logs, events := newLogs(), &journal{}
		hang := make(chan struct{})
		e := candidate(t, f, "a", leader.WithTTL(3*ttl), // few extensions in the hours
			leader.WithStopGrace(5*time.Second), leader.WithLogger(logs.logger()), leader.WithObserver(events.note("a")))
		r := start(t, e, func(context.Context, leader.Term) error {
			<-hang
			return nil
		})
		term := r.leads(t)
		time.Sleep(10 * time.Minute)
		assert.Empty(t, events.of(leader.Stuck), "its context has not ended")
		go func() { _ = e.Resign(t.Context()) }()
		time.Sleep(5*time.Second - time.Millisecond)
		assert.Empty(t, events.of(leader.Stuck))
		time.Sleep(2 * time.Millisecond)
		stuck := events.of(leader.Stuck)
		require.Len(t, stuck, 1)
		assert.Equal(t, term.Number, stuck[0].Term.Number)
		require.ErrorIs(t, stuck[0].Err, leader.ErrStuck)
		require.ErrorIs(t, stuck[0].Err, leader.ErrResigned)

		time.Sleep(time.Hour)
		assert.Len(t, events.of(leader.Stuck), 1)
		lines := len(logs.having("level=ERROR"))
		assert.Greater(t, lines, 8, "again and again")
		assert.Less(t, lines, 20, "and not too often")
		assert.Equal(t, 3, locked(f), "it has not returned, so nobody else may lead")

		r.stop()
		select {
		case <-r.ended:
			t.Error("Run has returned before the function")
		case <-time.After(10 * time.Minute):
		}
		close(hang)
		require.NoError(t, r.wait(t))
		assert.Len(t, r.served.all(), 1)
		all := events.all()
		assert.Equal(t, leader.Ended, all[len(all)-1].Kind)
		assert.Zero(t, locked(f))
	})
}

func TestAFunctionThatTakesItsTimeWithinTheGraceIsNotReported(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		events := &journal{}
		e := candidate(t, f, "a", leader.WithObserver(events.note("a")))
		r := start(t, e, func(ctx context.Context, _ leader.Term) error {
			<-ctx.Done()
			time.Sleep(leader.DefaultStopGrace - time.Millisecond)
			return errors.New("too late")
		})
		r.leads(t)
		require.NoError(t, e.Resign(t.Context()))
		assert.Empty(t, events.of(leader.Stuck))
	})
}
