package redlock

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock/redlocktest"
)

// A step that was delayed or doubled in the network must do nothing once its acquisition is over.
func TestLateStepsDoNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := redlocktest.Start(t, 1).Clients()[0]
		keys := []string{"k", "{k}:fence"}
		run := func(s *script, args ...any) any {
			v, err := c.Eval(t.Context(), s.src, keys, args...).Result()
			require.NoError(t, err)
			return v.([]any)[0]
		}
		acquire := func(owner string, token int) any {
			return run(acquireScript, owner, token, 8000, 80000, token, "next in line/us")
		}
		extend := func(owner string, number int) any { return run(extendScript, owner, number, 8000, 80000) }
		release := func(owner string, number int, grown string) { run(releaseScript, owner, number, 80000, grown, "1") }
		save := func(owner string, token, seq int) any { return run(saveScript, owner, token, seq, "v", 80000) }
		const yes, stale, taken, healed = int64(1), int64(-1), int64(0), int64(2)

		release("a", 10, "0") // overtook its acquire
		require.Equal(t, stale, acquire("a", 10))
		require.Equal(t, stale, extend("a", 10))
		require.Equal(t, yes, acquire("b", 11))
		require.Equal(t, taken, extend("a", 12), "another's lock is not extended")
		release("b", 11, "0")
		require.Equal(t, stale, acquire("b", 11))
		require.Equal(t, stale, extend("b", 11))
		require.Equal(t, healed, extend("b", 12), "a number above the fence heals")
		release("b", 20, "1") // the number had grown once more, in an extension that comes late
		require.Equal(t, stale, extend("b", 20))

		require.Equal(t, yes, acquire("c", 30))
		require.Equal(t, yes, save("c", 30, 2))
		require.Equal(t, stale, save("c", 30, 1), "an earlier save of the same lease")
		release("c", 30, "0")
		require.Equal(t, yes, acquire("d", 40))
		require.Equal(t, stale, save("c", 30, 3), "a save of the holder before")
		require.Equal(t, yes, save("d", 40, 1))
		release("x", 50, "0") // a loser raises the fence under d's lock
		require.Equal(t, yes, save("d", 40, 2), "the lock is d's")
		release("d", 40, "0")
		require.Equal(t, stale, save("d", 40, 3))

		require.Equal(t, yes, acquire("e", 60))
		require.Equal(t, yes, save("f", 70, 1), "a later holder, by the votes of other nodes")
		require.Equal(t, stale, save("e", 60, 1), "though the lock here is still e's")

		const lock, line = "k", "{k}:line"
		pass := func(owner string, number int, process string) {
			_, err := c.Eval(t.Context(), releaseScript.src, append(keys, line), owner, number, 80000, "0", "1", "", process, "4", 8000, 20).Result()
			require.NoError(t, err)
		}
		release("e", 70, "0")
		require.Equal(t, yes, acquire("g", 80))
		require.NoError(t, c.Set(t.Context(), line, "2:them 3:us 1:me", 0).Err())
		pass("f", 75, "me")
		require.Equal(t, "g", c.Get(t.Context(), lock).Val(), "another's lock is kept for nobody")
		pass("g", 80, "me")
		require.Equal(t, "next in line/them", c.Get(t.Context(), lock).Val())
		require.Equal(t, "3:us 4:me", c.Get(t.Context(), line).Val())
		require.Equal(t, taken, acquire("h", 90), "it is kept for them")
		require.NoError(t, c.Set(t.Context(), lock, "next in line/us", 0).Err())
		require.Equal(t, stale, acquire("g", 80), "though it is kept for us")
		require.Equal(t, "next in line/us", c.Get(t.Context(), lock).Val(), "it stays kept: a higher token comes next")
		require.Equal(t, taken, extend("g", 80))
		require.NoError(t, c.Set(t.Context(), lock, "next in line/us", 0).Err())
		require.Equal(t, yes, acquire("h", 90))
		require.Equal(t, "h", c.Get(t.Context(), lock).Val())
		require.Equal(t, 8*time.Second, c.PTTL(t.Context(), lock).Val())
	})
}
