package dashboard_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/dashboard"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

func acquired(name string, wait time.Duration) redlock.Event {
	return redlock.Event{Kind: redlock.Acquired, Name: name, Wait: wait}
}

func TestARecorderSumsUpWaitingAndHolding(t *testing.T) {
	r := dashboard.NewRecorder()
	r.Observe(acquired("a", 10*time.Millisecond))
	r.Observe(acquired("a", 30*time.Millisecond))
	r.Observe(redlock.Event{Kind: redlock.Refused, Name: "a", Wait: 20 * time.Millisecond, Err: redlock.ErrTaken})
	r.Observe(redlock.Event{Kind: redlock.Ended, Name: "a", Held: 3 * time.Second})
	r.Observe(redlock.Event{Kind: redlock.Ended, Name: "a", Held: time.Second})
	r.Observe(acquired("b", time.Second))
	r.Observe(redlock.Event{Kind: redlock.Ended, Name: "never heard of", Held: time.Second})
	r.Observe(redlock.Event{Kind: "unknown", Name: "c"})
	top := r.Top(10)
	require.Len(t, top, 2)
	require.Equal(t, "b", top[0].Name)
	a := top[1]
	require.WithinDuration(t, time.Now(), a.Last, time.Minute)
	a.Last = time.Time{}
	require.Equal(t, dashboard.Contention{
		Name: "a", Acquired: 2, Refused: 1, Wait: 60 * time.Millisecond, MaxWait: 30 * time.Millisecond,
		Ended: 2, Held: 4 * time.Second, MaxHeld: 3 * time.Second,
	}, a)
	require.Equal(t, 20*time.Millisecond, a.MeanWait())
	require.Equal(t, 2*time.Second, a.MeanHeld())
	require.Zero(t, dashboard.Contention{}.MeanWait())
	require.Len(t, r.Top(1), 1)
	require.Empty(t, r.Top(0))
	require.Empty(t, r.Top(-1))
}

func TestARecorderIsBoundedAndKeepsWhatIsWaitedForLongest(t *testing.T) {
	r := dashboard.NewRecorder()
	random := rand.New(rand.NewPCG(1, 2))
	var all time.Duration
	heavy := map[string]time.Duration{}
	for i := range 200_000 {
		wait := time.Duration(random.IntN(1000)) * time.Microsecond
		name := fmt.Sprintf("once-%d", i)
		if i%100 == 0 { // one event in a hundred is for one of ten names
			name = fmt.Sprintf("hot-%d", random.IntN(10))
			wait = 20 * time.Millisecond
			heavy[name] += wait
		}
		all += wait
		r.Observe(acquired(name, wait))
	}
	top := r.Top(1_000_000)
	require.Len(t, top, 512)
	kept := map[string]bool{}
	for _, c := range top {
		kept[c.Name] = true
	}
	for name, wait := range heavy {
		require.Greater(t, wait, all/512, "the test is about names above this")
		require.True(t, kept[name], name)
	}
	for i := range heavy {
		require.Contains(t, heavy, top[0].Name, i)
	}
}

func TestARecorderMayBeToldByManyAtOnce(t *testing.T) {
	r := dashboard.NewRecorder()
	var tellers sync.WaitGroup
	for i := range 8 {
		tellers.Go(func() {
			for n := range 2000 {
				r.Observe(acquired(fmt.Sprint(n%700), time.Duration(i+1)))
				if n%100 == 0 {
					r.Top(3)
				}
			}
		})
	}
	tellers.Wait()
	require.Len(t, r.Top(1000), 512)
}

func TestARecorderHearsOfTheLeasesOfALocker(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		r := dashboard.NewRecorder()
		locker := newLocker(t, f, "a", redlock.WithObserver(r.Observe))
		blocker := hold(t, newLocker(t, f, "b"), "sku:42")
		background(t, func(context.Context) error {
			time.Sleep(3 * time.Second)
			return blocker.Release(t.Context())
		})
		lease := hold(t, locker, "sku:42")
		time.Sleep(2 * time.Second)
		require.NoError(t, lease.Release(t.Context()))
		p := look(t, newBoard(t, locker, dashboard.WithContention(r)))
		settle()
		row := p.row("contention", "sku:42")
		require.InDelta(t, 3000, row["maxWait"], 500)
		require.InDelta(t, 2000, row["meanHeld"], 100)
	})
}
