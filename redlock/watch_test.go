package redlock_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

// watch watches the name "job" and has taken the wake-up that comes when it has begun to listen.
func (w *world) watch(l *redlock.Locker) *redlock.Watch {
	w.t.Helper()
	watch, err := l.Watch("job")
	require.NoError(w.t, err)
	w.t.Cleanup(watch.Close)
	synctest.Wait()
	require.True(w.t, woken(watch), "it has begun to listen")
	return watch
}

// woken reports whether the watch was woken, once all that is on its way has arrived.
func woken(watch *redlock.Watch) bool {
	synctest.Wait()
	select {
	case <-watch.C:
		return true
	default:
		return false
	}
}

func TestAWatchIsWokenByEachPublicationAndByTheReleaseAfterIt(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		watches := []*redlock.Watch{w.watch(a), w.watch(b), w.watch(b)}
		lease := w.acquire(a, "job")
		wakes := func(event string) {
			t.Helper()
			for i, watch := range watches {
				require.True(t, woken(watch), "%s, watch %d", event, i)
				require.False(t, woken(watch), "%s wakes once, watch %d", event, i)
			}
		}
		for range 3 {
			require.NoError(t, lease.Publish(t.Context(), []byte("news")))
			wakes("a publication")
		}
		require.Equal(t, "news", string(lease.State()))
		require.NoError(t, lease.Release(t.Context()))
		wakes("the release")
		require.Equal(t, "news", string(w.acquire(b, "job").State()), "it is saved")
	})
}

// Its channel would cost every release a call more, and on the channel of those who wait it would
// be counted among them.
func TestALeaseThatPublishedNothingWakesNoWatch(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		watch := w.watch(w.locker("b"))
		lease := w.acquire(a, "job")
		require.NoError(t, lease.Save(t.Context(), []byte("x")))
		require.NoError(t, lease.Release(t.Context()))
		_, err := a.TryAcquire(t.Context(), "other")
		require.NoError(t, err)
		require.False(t, woken(watch))
	})
}

func TestWhoWatchesDoesNotLookLikeOneWhoWaits(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a := w.locker("a")
		w.watch(a)
		w.watch(w.locker("b"))
		require.NoError(t, w.acquire(a, "job").Release(t.Context())) // the connections are there
		synctest.Wait()
		begin := time.Now()
		var line sync.WaitGroup
		for range 3 { // who stand in line in this process, so that it takes the name again and again
			line.Go(func() {
				for i := range 50 {
					lease := w.acquire(a, "job")
					assert.NoError(t, lease.Publish(t.Context(), []byte(strconv.Itoa(i))))
					assert.NoError(t, lease.Release(t.Context()))
				}
			})
		}
		line.Wait()
		require.Zero(t, time.Since(begin), "it gave way to nobody")
	})
}

func TestAPublicationWakesNobodyWhoWaits(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		lease := w.acquire(w.locker("a"), "job", redlock.WithAutoExtend(true))
		b, asked := w.watched("b")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _, _ = b.Acquire(ctx, "job") }()
		time.Sleep(time.Minute)
		before := len(asked.gaps())
		for range 1000 {
			require.NoError(t, lease.Publish(t.Context(), []byte("x")))
			synctest.Wait()
		}
		require.LessOrEqual(t, len(asked.gaps())-before, 1)
	})
}

func TestAProcessMayWaitForANameAndWatchIt(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		watch := w.watch(b)
		lease := w.acquire(a, "job", redlock.WithAutoExtend(true))
		won := make(chan time.Time)
		go func() {
			lease, err := b.Acquire(t.Context(), "job")
			if err == nil {
				won <- time.Now()
				_ = lease.Release(t.Context())
			}
		}()
		time.Sleep(time.Minute)
		require.NoError(t, lease.Publish(t.Context(), []byte("x")))
		require.True(t, woken(watch))
		released := time.Now()
		require.NoError(t, lease.Release(t.Context()))
		require.Equal(t, released, <-won, "the wake-up of those who wait has come as well")
		require.True(t, woken(watch))
	})
}

func TestAWatchHearsThroughAMinorityAndNotFromOneNodeAlone(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		a := w.locker("a")
		watch := w.watch(w.locker("b"))
		lease := w.acquire(a, "job", redlock.WithAutoExtend(true))
		w.fleet.Stop(0)
		w.fleet.Hang(1)
		require.NoError(t, lease.Publish(t.Context(), []byte("x")))
		require.True(t, woken(watch))
		w.fleet.Host("a").Partition(2)
		require.Error(t, lease.Publish(t.Context(), []byte("y")))
		require.False(t, woken(watch), "two of five have it")
	})
}

func TestAClosedWatchHearsNothing(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		b := w.locker("b")
		first, second := w.watch(b), w.watch(b)
		lease := w.acquire(w.locker("a"), "job")
		first.Close()
		first.Close()
		require.NoError(t, lease.Publish(t.Context(), []byte("x")))
		require.False(t, woken(first))
		require.True(t, woken(second), "the others go on")
		second.Close()
		again := w.watch(b) // at once, while the listeners still think about it
		require.NoError(t, lease.Publish(t.Context(), []byte("x")))
		require.True(t, woken(again))
		require.NoError(t, b.Close())
		again.Close()
		_, err := b.Watch("job")
		require.ErrorIs(t, err, redlock.ErrClosed)
		_, err = b.Watch("")
		require.ErrorIs(t, err, redlock.ErrInvalidName)
	})
}

func TestAWatchThatIsOpenedAgainAtOnceHasBegunToListen(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		b := w.locker("b")
		w.watch(b).Close() // no time passes: the listeners have not woken yet
		watch := w.watch(b)
		lease := w.acquire(w.locker("a"), "job")
		require.NoError(t, lease.Publish(t.Context(), []byte("x")))
		require.True(t, woken(watch))
	})
}

func TestThousandsOfWatchesAreApartAndLeaveNothing(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		const many = 2000
		watches := make([]*redlock.Watch, many)
		for i := range watches {
			var err error
			watches[i], err = b.Watch("job " + strconv.Itoa(i/2)) // two of each
			require.NoError(t, err)
		}
		time.Sleep(2 * time.Second)
		for i, watch := range watches {
			require.True(t, woken(watch), "watch %d has begun to listen", i)
		}
		lease := w.acquire(a, "job 7")
		require.NoError(t, lease.Publish(t.Context(), []byte("x")))
		for i, watch := range watches {
			require.Equal(t, i/2 == 7, woken(watch), "watch %d", i)
		}
		for _, watch := range watches {
			go watch.Close()
		}
		time.Sleep(2 * time.Second)
		for i := range 3 {
			n, err := w.fleet.Clients()[i].PubSubChannels(t.Context(), "*job*").Result()
			require.NoError(t, err)
			require.Empty(t, n)
		}
		require.NoError(t, lease.Release(t.Context()))
	})
}

func TestAWatchThatIsOpenedWhileNoNodeCanBeReachedListensFromWhenTheyCan(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		w.fleet.Host("b").Partition()
		watch, err := b.Watch("job")
		require.NoError(t, err)
		defer watch.Close()
		lease := w.acquire(a, "job", redlock.WithAutoExtend(true))
		require.NoError(t, lease.Publish(t.Context(), []byte("x")))
		time.Sleep(time.Minute)
		require.False(t, woken(watch))
		w.fleet.Host("b").Heal()
		time.Sleep(10 * time.Second)
		require.True(t, woken(watch), "it has begun to listen, and may have missed something")
		require.NoError(t, lease.Publish(t.Context(), []byte("y")))
		require.True(t, woken(watch))
	})
}

func TestAWatchGoesOnWhenNodesComeBack(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		watch := w.watch(w.locker("b"))
		lease := w.acquire(w.locker("a"), "job", redlock.WithAutoExtend(true))
		for round := range 6 {
			w.fleet.Stop(round % 3)
			time.Sleep(10 * time.Second)
			w.fleet.Restart(round % 3)
			time.Sleep(20 * time.Second)
			woken(watch) // it may have been, for good measure
			require.NoError(t, lease.Publish(t.Context(), []byte(strconv.Itoa(round))))
			require.True(t, woken(watch), "round %d", round)
		}
	})
}

func TestTheNewsOfNamesThatLookAlikeAreApart(t *testing.T) {
	for _, prefix := range []string{redlock.DefaultKeyPrefix, "", "{app}:"} {
		bubble(t, 3, func(t *testing.T, w *world) {
			a, b := w.locker("a", redlock.WithKeyPrefix(prefix)), w.locker("b", redlock.WithKeyPrefix(prefix))
			names := []string{"a", "{a}", "a{", "{a}b", "a{b}", "a{b}c", "a:fence:x", "inbox/a", "*", "a?", "[a]", "\x00"}
			watches := map[string]*redlock.Watch{}
			for _, name := range names {
				watch, err := b.Watch(name)
				require.NoError(t, err, "%q", name)
				defer watch.Close()
				watches[name] = watch
			}
			time.Sleep(2 * time.Second)
			for name, watch := range watches {
				require.True(t, woken(watch), "%q", name)
			}
			for _, name := range names {
				lease := w.acquire(a, name)
				require.NoError(t, lease.Publish(t.Context(), []byte("x")))
				for other, watch := range watches {
					require.Equal(t, other == name, woken(watch), "%q hears of %q", other, name)
				}
				require.NoError(t, lease.Release(t.Context()))
				require.True(t, woken(watches[name]))
			}
		})
	}
}
