//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

func TestASignalThatCameBeforeACommandListenedForItsOwnIsHeard(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	_, err := newLocker(t, f).Acquire(t.Context(), "taken", redlock.WithAutoExtend(true))
	require.NoError(t, err)
	for line, want := range map[string]int{
		"run taken -- true":         exitSignal + int(syscall.SIGTERM),
		"lead taken -- true":        exitOK,
		"cron job @hourly -- true":  exitOK,
		"run free -- sleep 60":      exitSignal + int(syscall.SIGTERM),
		"lead chair -- sleep 60":    exitOK,
		"lead --once l -- sleep 60": exitOK,
	} {
		c := newCall(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(signalled{syscall.SIGTERM}) // as main does, whose context it is
		c.ctx = ctx
		code := c.begin(f, strings.Split(line, " ")...).end()
		assert.Equal(t, want, code, "%s: %s", line, c.err)
	}
	requireFree(t, f, "free")
}

func TestANodeThatHangsHoldsNoCommandUpAtItsEnd(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.Hang(1)
	hasty(t, f)
	for _, line := range []string{"run x -- true", "run --no-wait x -- true", "lead --once x -- true"} {
		var took time.Duration
		for first := time.Now(); time.Since(first) < patience; { // a busy machine may spoil some
			began := time.Now()
			code, _, told := quorate(t, f, strings.Split(line, " ")...)
			if code == exitNoQuorum {
				continue
			}
			require.Zero(t, code, told)
			if took = time.Since(began); took < 1500*time.Millisecond {
				break
			}
		}
		assert.Less(t, took, 1500*time.Millisecond, line)
	}
}

func TestATimeToWaitThatIsOverBeforeNodesAreGivenUpNamesThem(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.Hang(1)
	f.Hang(2)
	hasty(t, f)
	code, _, told := quorate(t, f, "run", "--quiet", "--wait", "200ms", "x", "--", "true")
	require.Equal(t, exitNoQuorum, code, told)
	require.Equal(t, 1, strings.Count(told, "\n"), told)
	require.Contains(t, told, f.Addrs()[1])
	require.NotContains(t, told, "()")
}

func TestTheTimeThatIsToldAsWaitedIsAllOfIt(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	_, err := newLocker(t, f).Acquire(t.Context(), "x", redlock.WithAutoExtend(true))
	require.NoError(t, err)
	f.Hang(1) // so that the first attempt takes a part of it
	hasty(t, f)
	got := quorately(t, func() outcome {
		code, _, told := quorate(t, f, "run", "--wait", "700ms", "x", "--", "true")
		return outcome{code: code, err: told}
	})
	require.Equal(t, exitTaken, got.code, got.err)
	require.Regexp(t, `waited ([7-9]\d\dms|\d+(\.\d+)?s): "x" is held by somebody`, got.err)
}

func TestClientsThatAreClosedAtTheEndAreNotToldOf(t *testing.T) {
	t.Parallel()
	c := newCall(t)
	close(c.signals)
	log := c.console.warnings()
	log.Warn("redlock: node does not answer", "error", fmt.Errorf("ask: %w", redis.ErrClosed))
	log.Warn("redlock: node does not answer", "error", errors.New("refused"))
	require.Equal(t, 1, strings.Count(c.err.String(), "\n"), c.err)
	require.Contains(t, c.err.String(), "refused")
}
