//go:build unix

package main

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/scheduler"
)

func TestEachTimeIsRunOnceInTheFleet(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	const program = "echo $QUORATE_JOB $QUORATE_SCHEDULED $QUORATE_KIND $QUORATE_ATTEMPT $QUORATE_TOKEN"
	line := []string{"cron", "tick", "@every 1s", "--timezone", "Europe/Berlin", "--", "sh", "-c", program}
	a, b := begin(t, f, line...), begin(t, f, line...)
	both := func() []string { return strings.Fields(a.out.String() + b.out.String()) }
	require.Eventually(t, func() bool { return len(both()) >= 15 }, patience, time.Millisecond, "%s %s", a.err, b.err)
	for _, c := range []*call{a, b} {
		c.signals <- syscall.SIGTERM
		require.Zero(t, c.end(), c.err)
	}
	fields := both()
	seen := map[string]bool{}
	for ; len(fields) >= 5; fields = fields[5:] {
		require.Equal(t, "tick", fields[0])
		at, err := time.Parse(time.RFC3339, fields[1])
		require.NoError(t, err)
		require.NotEqual(t, "Z", fields[1][len(fields[1])-1:], "it is in the zone of --timezone")
		require.False(t, seen[fields[1]], "%s was run twice", at)
		seen[fields[1]] = true
		require.Equal(t, []string{"scheduled", "1"}, fields[2:4])
	}
	require.Regexp(t, `(?m)^quorate: tick \S+: ran, took \S+, began \S+ late, attempt 1, token \d+$`, a.err.String()+b.err.String())
	requireFree(t, f, "job/tick")
}

func TestASpecMayHaveSpacesBeforeItAndSeconds(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	c := begin(t, f, "cron", "tick", "  * * * * * *", "--quiet", "--", "echo", "ran")
	c.prints("ran")
	c.signals <- syscall.SIGTERM
	require.Zero(t, c.end())
	require.Empty(t, c.err.String())
}

func TestAnyExitCodeButZeroIsAFailureAndIsRetried(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	c := begin(t, f, "cron", "tick", "@every 1s", "--retry", "1", "--", "sh", "-c", "echo tried; exit 3")
	c.says("failed")
	c.signals <- syscall.SIGTERM
	require.Zero(t, c.end())
	require.GreaterOrEqual(t, strings.Count(c.out.String(), "tried"), 2)
	require.Contains(t, c.err.String(), "exit status 3")
}

func TestRunsAreWaitedForAtTheEndAndThenEnded(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	c := begin(t, f, "cron", "tick", "@every 1s", "--drain", "1m", "--", "sh", "-c", "echo up; sleep 1; echo done")
	c.prints("up")
	c.signals <- syscall.SIGTERM
	require.Zero(t, c.end())
	require.Regexp(t, `^(up\ndone\n)+$`, c.out.String(), "a run was not waited for")

	c = begin(t, f, "cron", "tock", "@every 1s", "--drain", "50ms", "--grace", "3600ms", "--", "sh", "-c", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 1; done")
	c.prints("up")
	c.signals <- syscall.SIGTERM
	require.Equal(t, exitFailed, c.end())
	require.Equal(t, "up\nbye\n", c.out.String())
	require.Contains(t, c.err.String(), "drain timeout")
	requireFree(t, f, "job/tock")
}

func TestASecondSignalKillsRuns(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	c := begin(t, f, "cron", "tick", "@every 1s", "--drain", "1h", "--", "sh", "-c", stubborn)
	pid := pidIn(t, c, "pid")
	c.signals <- syscall.SIGTERM
	c.signals <- syscall.SIGTERM
	require.NotEqual(t, exitUsage, c.end(), c.err)
	requireDead(t, pid)
	requireFree(t, f, "job/tick")
}

func TestARunThatTakesTooLongIsEnded(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	c := begin(t, f, "cron", "tick", "@every 1s", "--timeout", "200ms", "--grace", "100ms", "--", "sh", "-c", stubborn)
	pid := pidIn(t, c, "pid")
	c.says("failed (timeout)") // of this run, or of one before that had not come so far
	requireDead(t, pid)
	c.signals <- syscall.SIGTERM
	c.end()
	require.Contains(t, c.err.String(), "was killed")
}

func TestARunIsDeadBeforeAnotherReplicaCanRunTheJob(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	c := newCall(t)
	var left []time.Duration
	c.err.see = func(text string) {
		if strings.Contains(text, "failed (lease_ended)") {
			for i := range f.Len() {
				left = append(left, f.TTL(i, redlock.DefaultKeyPrefix+"job/tick"))
			}
		}
	}
	c.begin(f, "cron", "tick", "@every 1s", "--", "sh", "-c", stubborn)
	pid := pidIn(t, c, "pid")
	machine := watchDelays(t)
	stopAll(f)
	c.says("failed (lease_ended)")
	requireDead(t, pid)
	c.signals <- syscall.SIGTERM
	c.end()
	require.GreaterOrEqual(t, len(left), 3)
	machine.requireLeft(t, left[:3])
}

func TestEveryFlagOfAJobIsTaken(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	c := begin(t, f, "cron", "tick", "@every 1s",
		"--overlap", "allow", "--concurrency", "2", "--misfire", "all:3", "--catch-up", "5m", "--start-deadline", "10s", "--timeout", "1m",
		"--at-least-once", "3", "--retry", "2", "--jitter", "10ms", "--dst-gap", "skip", "--dst-fold", "twice", "--timezone", "America/New_York",
		"--label", "team=a", "--ttl", "4s", "--grace", "1s", "--drain", "5s", "--", "echo", "ran")
	c.prints("ran")
	c.signals <- syscall.SIGTERM
	require.Zero(t, c.end(), c.err)
	sched, err := scheduler.New(newLocker(t, f, lenient()))
	require.NoError(t, err)
	history, err := sched.History(t.Context(), "tick")
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(history, func(r scheduler.Record) bool { return r.Outcome == scheduler.Ran }), "%v", history)
}
