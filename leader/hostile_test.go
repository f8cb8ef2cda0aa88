package leader_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

func TestElectionsWithNamesOfAnyBytesAreApart(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		locker := newLocker(t, f, "a")
		names := []string{"a", "a:fence", "{a}", "a{b}c", "{{a}}", "a{", "job/a", "\x00", "a\nb", "*", "\xff", "ünï", strings.Repeat("x", redlock.MaxNameLength)}
		numbers := map[redlock.Token]string{}
		for _, name := range names {
			e, err := leader.New(locker, name, leader.WithTTL(ttl), leader.WithLogger(quiet))
			require.NoError(t, err, "%q", name)
			term := start(t, e, untilTold).leads(t)
			require.Empty(t, numbers[term.Number], "%q", name)
			numbers[term.Number] = name
		}
		for number, name := range numbers {
			e, err := leader.New(newLocker(t, f, "b"), name)
			require.NoError(t, err)
			term, err := e.Leader(t.Context())
			require.NoError(t, err, "%q", name)
			require.Equal(t, number, term.Number, "%q", name)
		}
		for _, name := range []string{"", "a}b", "{}", "{a}:fence", strings.Repeat("x", redlock.MaxNameLength+1)} {
			_, err := leader.New(locker, name)
			require.ErrorIs(t, err, redlock.ErrInvalidName, "%q", name)
		}
	})
}

// The lease of an election is an ordinary one: who takes a lock of its name keeps it from being won.
func TestALockOfAnElectionsNameExcludesIt(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		lease, err := newLocker(t, f, "b").Acquire(t.Context(), name, redlock.WithAutoExtend(true))
		require.NoError(t, err)
		e := candidate(t, f, "a")
		r := start(t, e, untilTold)
		synctest.Wait()
		term, err := e.Leader(t.Context())
		require.NoError(t, err)
		require.Equal(t, "b", term.Leader, "that somebody holds it is all that is known")
		require.Zero(t, term.Number)
		require.False(t, e.IsLeader())
		require.NoError(t, lease.Release(t.Context()))
		require.Greater(t, r.leads(t).Number, lease.Token())
	})
}
