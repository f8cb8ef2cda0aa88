package leader_test

import (
	"bytes"
	"context"
	"errors"
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

// saving leads until the context ends, and has saved b first.
func saving(t *testing.T, b string) lead {
	return func(ctx context.Context, term leader.Term) error {
		if err := term.Save(ctx, []byte(b)); err != nil {
			t.Error(err)
		}
		return untilTold(ctx, term)
	}
}

func TestWhatALeaderSavedIsGivenToTheNextHoweverManyTermsLater(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		first := start(t, candidate(t, f, "first"), saving(t, "offset 42"))
		first.leads(t)
		synctest.Wait()
		first.stop()
		require.NoError(t, first.wait(t))
		for i := range 6 {
			host := fmt.Sprint("host-", i)
			opts := []leader.Option{leader.WithLabels(map[string]string{"n": host})}
			r := start(t, candidate(t, f, host, opts...), untilTold)
			require.Equal(t, "offset 42", string(r.leads(t).State()), "after %d leaders that saved nothing", i)
			time.Sleep(time.Minute)
			switch i % 3 {
			case 0: // crashes, and comes back
				f.Host(host).Partition()
				time.Sleep(2 * ttl)
			case 1: // loses a node's memory
				f.RestartEmpty(0)
				time.Sleep(time.Minute)
			}
			r.stop()
			require.NoError(t, r.wait(t))
			f.Host(host).Heal()
		}
		last := start(t, candidate(t, f, "last"), saving(t, ""))
		last.leads(t)
		synctest.Wait()
		last.stop()
		require.NoError(t, last.wait(t))
		assert.Empty(t, start(t, candidate(t, f, "a"), untilTold).leads(t).State(), "nothing is a state as well")
	})
}

// The record that says that the function was called is written at the same time as what it saves.
func TestASaveThatMeetsTheAnnouncementOfItsTermIsNotUndone(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		for i := range f.Len() {
			f.Delay(i, time.Millisecond)
		}
		saved, terms := "", 0
		var runs []*run
		for _, host := range []string{"a", "b"} {
			runs = append(runs, start(t, candidate(t, f, host), func(ctx context.Context, term leader.Term) error {
				f.Host("a").Heal()
				f.Host("b").Heal()
				assert.Equal(t, saved, string(term.State()))
				terms++
				saved = fmt.Sprint(terms)
				if err := term.Save(ctx, []byte(saved)); err != nil {
					t.Error(err)
				}
				time.Sleep(10 * time.Millisecond)
				f.Host(host).Partition() // crashed: nothing is put right when the term ends
				<-ctx.Done()
				return nil
			}))
		}
		time.Sleep(150 * time.Second)
		for _, r := range runs {
			r.stop()
			require.NoError(t, r.wait(t))
		}
		assert.Greater(t, terms, 15)
	})
}

func TestATermKnowsWhatItHasSavedAndOthersSeeIt(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		e := candidate(t, f, "a")
		saved := make(chan struct{})
		start(t, e, func(ctx context.Context, term leader.Term) error {
			assert.Nil(t, term.State(), "nobody has saved before")
			b := []byte("one")
			if err := term.Save(ctx, b); err != nil {
				t.Error(err)
			}
			b[0] = 'X'
			assert.Equal(t, "one", string(term.State()))
			term.State()[0] = 'X'
			if err := term.Save(ctx, []byte("two")); err != nil {
				t.Error(err)
			}
			assert.Equal(t, "two", string(term.State()), "also a copy that was taken before")
			close(saved)
			return untilTold(ctx, term)
		})
		<-saved
		told, err := candidate(t, f, "b").Leader(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "two", string(told.State()))
		require.ErrorIs(t, told.Save(t.Context(), nil), leader.ErrNotLeader)
		require.ErrorContains(t, told.Save(t.Context(), nil), "the leading function is given")
	})
}

func TestOnlyTheLeaderSavesAndOnlyInItsTerm(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		e := candidate(t, f, "a")
		r := start(t, e, func(ctx context.Context, term leader.Term) error {
			<-ctx.Done()
			assert.NoError(t, term.Save(context.WithoutCancel(ctx), []byte("winding down")))
			return nil
		})
		term := r.leads(t)
		largest := bytes.Repeat([]byte{0xff}, leader.MaxStateSize)
		require.NoError(t, term.Save(t.Context(), largest))
		err := term.Save(t.Context(), append(largest, 0))
		require.ErrorIs(t, err, redlock.ErrStateTooLarge)
		require.ErrorContains(t, err, "3073 bytes, the limit is 3072")
		require.NoError(t, e.Resign(t.Context()))
		require.ErrorIs(t, term.Save(t.Context(), []byte("late")), leader.ErrNotLeader)
		next := start(t, candidate(t, f, "b"), untilTold).leads(t)
		assert.Equal(t, "winding down", string(next.State()))
	})
}

// A leader that was overtaken cannot change what its successor has.
func TestASaveOfAnOvertakenLeaderIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		slow := start(t, candidate(t, f, "slow"), func(ctx context.Context, term leader.Term) error {
			<-ctx.Done()
			time.Sleep(time.Minute)
			assert.Error(t, term.Save(context.WithoutCancel(ctx), []byte("late")))
			return nil
		})
		slow.leads(t)
		f.Host("slow").Partition()
		next := start(t, candidate(t, f, "next"), saving(t, "new"))
		term := next.leads(t)
		f.Host("slow").Heal()
		time.Sleep(2 * time.Minute)
		assert.Equal(t, "new", string(term.State()))
		told, err := candidate(t, f, "observer").Leader(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "new", string(told.State()))
	})
}

func TestALeaderSaysWhereItIsAndWhatItIs(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		labels := map[string]string{"zone": "b", "version": "<1.2>"}
		e := candidate(t, f, "a", leader.WithAddress("10.0.0.1:80"), leader.WithLabels(labels))
		labels["zone"] = "changed"
		r := start(t, e, func(ctx context.Context, term leader.Term) error {
			term.Labels["zone"] = "changed" // its own copy
			return untilTold(ctx, term)
		})
		r.leads(t)
		told, err := candidate(t, f, "b").Leader(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "10.0.0.1:80", told.Address)
		assert.Equal(t, map[string]string{"zone": "b", "version": "<1.2>"}, told.Labels)
	})
}

// What a leader of the first version left: a record without a version, a phase or a state.
func TestARecordOfAnOlderVersionIsRead(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		lease, err := newLocker(t, f, "old").Acquire(t.Context(), name)
		require.NoError(t, err)
		nonce := lease.Owner()[strings.LastIndexByte(lease.Owner(), '/')+1:]
		require.NoError(t, lease.Save(t.Context(), fmt.Appendf(nil,
			`{"lease":%q,"leader":"pod-0","number":%d,"since":"2026-11-21T00:00:00Z"}`, nonce, lease.Token())))
		e := candidate(t, f, "new")
		told, err := e.Leader(t.Context())
		require.NoError(t, err)
		assertTerm(t, leader.Term{Name: name, Number: lease.Token(), Leader: "pod-0", Since: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)}, told)
		w := watch(t, e)
		assertTerm(t, told, w.next(t))
		require.NoError(t, lease.Release(t.Context()))
		assert.Nil(t, start(t, e, untilTold).leads(t).State())
	})
}

func TestTransferHandsOverToTheCandidateThatItNames(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		electors, runs := map[string]*leader.Elector{}, map[string]*run{}
		events := &journal{}
		hosts := []string{"a", "b", "c", "d", "e"}
		for i, host := range hosts {
			electors[host] = candidate(t, f, host, leader.WithObserver(events.note(host)), leader.WithPriority(i/4)) // the last is not the first in order
			runs[host] = start(t, electors[host], untilTold)
			time.Sleep(time.Second)
		}
		now := "a"
		runs[now].leads(t)
		for _, heir := range []string{"c", "e", "b", "d", "a", "e"} {
			time.Sleep(time.Minute)
			began, terms := time.Now(), len(events.all())
			require.NoError(t, electors[now].Transfer(t.Context(), heir))
			assert.Less(t, time.Since(began), 10*atOnce)
			require.True(t, electors[heir].IsLeader())
			require.ErrorIs(t, context.Cause(runs[now].served.last().ctx), leader.ErrTransferred)
			for _, ev := range events.all()[terms:] {
				if ev.Kind == leader.Began {
					assert.Equal(t, heir, ev.Term.Leader, "no term of another began")
				}
			}
			now = heir
		}
		served := 0
		for _, host := range hosts {
			served += len(runs[host].served.all())
		}
		assert.Equal(t, 7, served)
		assert.NotEmpty(t, events.of(leader.StoodBack))
	})
}

func TestAnHeirThatIsDeadDelaysNobodyForLong(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		e := candidate(t, f, "a")
		start(t, e, untilTold).leads(t)
		others := map[string]*run{}
		for _, host := range []string{"b", "c", "d"} {
			others[host] = start(t, candidate(t, f, host), untilTold)
		}
		time.Sleep(time.Minute)
		began := time.Now()
		err := e.Transfer(t.Context(), "dead")
		require.ErrorIs(t, err, leader.ErrHeirAbsent)
		require.ErrorContains(t, err, `leader: transfer "billing" to "dead"`)
		assert.InDelta(t, ttl/4, time.Since(began), float64(5*atOnce))
		terms := 0
		for _, r := range others {
			terms += len(r.served.all())
		}
		assert.Equal(t, 1, terms)
	})
}

func TestTransferWithoutAnybodyElseComesBack(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		e := candidate(t, f, "a")
		r := start(t, e, untilTold)
		r.leads(t)
		began := time.Now()
		require.ErrorIs(t, e.Transfer(t.Context(), "nobody"), leader.ErrHeirAbsent)
		assert.LessOrEqual(t, time.Since(began), ttl+ttl/4+atOnce, "the pause, and the heir's time")
		r.leads(t)

		alone := newElector(t, newLocker(t, f, "b"), leader.WithResignPause(time.Hour))
		r.stop()
		require.NoError(t, r.wait(t))
		start(t, alone, untilTold).leads(t)
		began = time.Now()
		require.ErrorIs(t, alone.Transfer(t.Context(), "nobody"), leader.ErrNoLeader)
		assert.Equal(t, 2*ttl, time.Since(began))
	})
}

func TestTransferIsRefusedWhereItMakesNoSense(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		e := candidate(t, f, "a")
		require.ErrorIs(t, e.Transfer(t.Context(), "b"), leader.ErrNotLeader)
		answers := make(chan error, 1)
		var once sync.Once
		r := start(t, e, func(ctx context.Context, term leader.Term) error {
			once.Do(func() { answers <- e.Transfer(ctx, "b") })
			return untilTold(ctx, term)
		})
		r.leads(t)
		require.NoError(t, <-answers, "from within it does not wait")
		r.leads(t)
		for _, identity := range []string{"", "a", "\xff", strings.Repeat("x", 513), strings.Repeat("\x00", 512)} {
			require.ErrorIs(t, e.Transfer(t.Context(), identity), redlock.ErrInvalidOption, "%q", identity)
		}
		assert.True(t, e.IsLeader(), "and has ended nothing")
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("the caller has gone")
		cancel(gone)
		require.ErrorIs(t, e.Transfer(ctx, "b"), gone)
	})
}

func TestAGracefulHandOverTakesNoTimeOfItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		const delay = time.Millisecond // each way
		for i := range f.Len() {
			f.Delay(i, delay)
		}
		first := start(t, candidate(t, f, "first"), untilTold)
		first.leads(t)
		second := start(t, candidate(t, f, "second"), untilTold)
		time.Sleep(time.Minute)
		told := time.Now()
		first.stop()
		second.leads(t)
		// The release and its publication, the acquisition, the record.
		assert.LessOrEqual(t, time.Since(told), 8*delay)
	})
}
