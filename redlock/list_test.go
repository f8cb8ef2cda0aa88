package redlock_test

import (
	"fmt"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

// told collects the names of a list, which must come without an error.
func told(t *testing.T, list iter.Seq2[redlock.Status, error]) []string {
	t.Helper()
	var names []string
	for status, err := range list {
		require.NoError(t, err)
		names = append(names, status.Name)
	}
	return names
}

// listError is what a list ends with.
func listError(list iter.Seq2[redlock.Status, error]) (err error) {
	for _, e := range list {
		err = e
	}
	return err
}

var awkwardNames = []string{
	"*", "?", "[a]", `\`, "a b", "b{c}d", "b{c}d:x", "c:fence", "{", "ünïcode", "\x00\n", "zz:line", "{t}",
}

func TestListTellsOfHeldNamesAndOfAllThatWereUsed(t *testing.T) {
	for _, prefix := range []string{"quorate:", "", "a{b}", "*[?"} {
		bubble(t, 5, func(t *testing.T, w *world) {
			l := w.locker("a", redlock.WithKeyPrefix(prefix))
			names := slices.DeleteFunc(slices.Clone(awkwardNames), func(name string) bool {
				return l.Validate("used/"+name) != nil // its keys would be another's
			})
			require.Greater(t, len(names), 10)
			for _, name := range names {
				lease := w.acquire(l, "used/"+name)
				require.NoError(t, lease.Save(t.Context(), []byte("x")), name)
				require.NoError(t, lease.Release(t.Context()))
			}
			tokens := map[string]redlock.Token{}
			for _, name := range names {
				tokens["held/"+name] = w.acquire(l, "held/"+name).Token()
			}
			synctest.Wait()

			held := told(t, l.List(t.Context(), redlock.Filter{Held: true}))
			require.Len(t, held, len(names), "prefix %q: %q", prefix, held)
			require.True(t, slices.IsSorted(held))
			all := told(t, l.List(t.Context(), redlock.Filter{}))
			require.Len(t, all, 2*len(names), "prefix %q: %q", prefix, all)
			for _, name := range names {
				require.Contains(t, held, "held/"+name)
				require.Contains(t, all, "held/"+name)
				require.Contains(t, all, "used/"+name)
			}
			for status, err := range l.List(t.Context(), redlock.Filter{Held: true}) {
				require.NoError(t, err)
				require.Equal(t, tokens[status.Name], status.Token)
				require.Contains(t, status.Holder, "a/")
			}
			for _, name := range names {
				require.Contains(t, told(t, l.List(t.Context(), redlock.Filter{Prefix: "used/" + name})), "used/"+name)
				require.Contains(t, told(t, l.List(t.Context(), redlock.Filter{Held: true, Prefix: "held/" + name})), "held/"+name)
			}
			require.Equal(t, []string{"used/*"}, told(t, l.List(t.Context(), redlock.Filter{Prefix: "used/*"})), "the prefix is no pattern")
			require.Empty(t, told(t, l.List(t.Context(), redlock.Filter{Held: true, Prefix: "used/"})))
		})
	}
}

func TestListDoesNotTakeTheLineOfANameForNames(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a, b := w.locker("a"), w.locker("b")
		lease := w.acquire(a, "job")
		go func() {
			if next, err := b.Acquire(t.Context(), "job"); err == nil {
				_ = next.Release(t.Context())
			}
		}()
		time.Sleep(time.Second)
		require.Equal(t, []string{"job"}, told(t, a.List(t.Context(), redlock.Filter{Held: true})))
		require.Equal(t, []string{"job"}, told(t, a.List(t.Context(), redlock.Filter{})))
		require.NoError(t, lease.Release(t.Context()))
		synctest.Wait()
	})
}

func TestAListNeedsAQuorumAndNobodyWaitsForAMinority(t *testing.T) {
	bubble(t, 5, func(t *testing.T, w *world) {
		l := w.locker("a")
		for i := range 1000 {
			w.acquire(l, fmt.Sprintf("sku:%04d", i))
		}
		w.fleet.Stop(0)
		w.fleet.Hang(1)
		begin := time.Now()
		require.Len(t, told(t, l.List(t.Context(), redlock.Filter{Held: true})), 1000)
		require.Less(t, time.Since(begin), 3*time.Second)

		w.fleet.Stop(2)
		err := listError(l.List(t.Context(), redlock.Filter{Held: true}))
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		var failure *redlock.QuorumError
		require.ErrorAs(t, err, &failure)
		require.Equal(t, 2, failure.Votes)
		require.Len(t, failure.Nodes, 3)
		w.fleet.Resume(1)
	})
}

func TestAListEndsWhenItIsLeftAndWhenTheLockerIsClosed(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		l := w.locker("a")
		w.acquire(l, "one")
		w.acquire(l, "two")
		for status, err := range l.List(t.Context(), redlock.Filter{Held: true}) {
			require.NoError(t, err)
			require.Equal(t, "one", status.Name)
			break
		}
		require.NoError(t, l.Close())
		require.ErrorIs(t, listError(l.List(t.Context(), redlock.Filter{})), redlock.ErrClosed)
	})
}
