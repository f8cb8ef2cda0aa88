//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

// alive reports whether a process runs: one that nobody has waited for has ended all the same.
func alive(t *testing.T, pid int) bool {
	t.Helper()
	if _, err := os.Stat("/proc/self/stat"); err == nil { // in no time, which counts for some
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, state, _ := strings.Cut(string(stat), ") ")
		return err == nil && !strings.HasPrefix(state, "Z")
	}
	state, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(state)), "Z")
}

// requireDead waits for the end of a process that would not end by itself.
func requireDead(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool { return !alive(t, pid) }, patience, time.Millisecond, "process %d runs on", pid)
}

// butWaiting leaves out the line about a wait: on a busy machine nodes may be late.
func butWaiting(told string) string {
	return regexp.MustCompile(`(?m)^quorate: waiting: .*\n`).ReplaceAllString(told, "")
}

// pidIn is the number behind a word on stdout.
func pidIn(t *testing.T, c *call, word string) int {
	t.Helper()
	c.prints(word + " ")
	_, rest, _ := strings.Cut(c.out.String(), word+" ")
	pid, err := strconv.Atoi(strings.Fields(rest)[0])
	require.NoError(t, err)
	return pid
}

func TestTheExitCodeOfTheProgramPassesThrough(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	for script, want := range map[string]int{
		"true": 0, "exit 1": 1, "exit 120": 120, "exit 255": 255,
		"kill -TERM $$": 143, "kill -KILL $$": 137,
	} {
		code, _, told := quorate(t, f, "run", "x", "--", "sh", "-c", script)
		assert.Equal(t, want, code, script)
		assert.Empty(t, butWaiting(told), script)
		requireFree(t, f, "x")
	}
}

func TestWhatCannotBeRunAcquiresNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	dir := t.TempDir()
	plain, unknown, orphan := filepath.Join(dir, "plain"), filepath.Join(dir, "unknown"), filepath.Join(dir, "orphan")
	require.NoError(t, os.WriteFile(plain, []byte("text"), 0o600))
	require.NoError(t, os.WriteFile(unknown, []byte("\x00\x01"), 0o700))
	require.NoError(t, os.WriteFile(orphan, []byte("#!/nowhere/at/all\n"), 0o700))
	for program, want := range map[string]int{
		"no-such-program": exitNotFound, "/no/such/program": exitNotFound, orphan: exitNotFound,
		plain: exitCannotRun, dir: exitCannotRun, unknown: exitCannotRun,
	} {
		code, _, told := quorate(t, f, "run", "x", "--", program)
		assert.Equal(t, want, code, "%s: %s", program, told)
		assert.Contains(t, told, strconv.Quote(program))
		assert.Equal(t, 1, strings.Count(told, "\n"), told)
		requireFree(t, f, "x")
	}
}

func TestTheProgramIsToldItsNameAndItsToken(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	_, first, _ := quorate(t, f, "run", "sku:42", "--", "sh", "-c", "echo $QUORATE_NAME $QUORATE_TOKEN")
	_, second, _ := quorate(t, f, "run", "sku:42", "--", "sh", "-c", "echo $QUORATE_NAME $QUORATE_TOKEN")
	token := func(out string) int64 {
		fields := strings.Fields(out)
		require.Len(t, fields, 2)
		require.Equal(t, "sku:42", fields[0])
		n, err := strconv.ParseInt(fields[1], 10, 64)
		require.NoError(t, err)
		return n
	}
	require.Greater(t, token(second), token(first))
}

func TestFlagsBehindTheDashesAreThePrograms(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	code, out, told := quorate(t, f, "run", "x", "--ttl", "2s", "--", "echo", "--ttl", "-v", "--", "--help", " a ")
	require.Zero(t, code, told)
	require.Equal(t, "--ttl -v -- --help  a \n", out)
}

func TestTheNameIsFreeWhenTheProgramEndsThoughItsOffspringHoldsTheOutputOpen(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	c := begin(t, f, "run", "x", "--", "sh", "-c", "sleep 60 & echo pid $!")
	pid := pidIn(t, c, "pid")
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	require.Zero(t, c.end(), c.err)
	require.True(t, alive(t, pid), "it was to outlive the program")
	requireFree(t, f, "x")
}

func TestATakenNameIsRefusedAndTheLineSaysWhoHasIt(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	lease, err := newLocker(t, f).Acquire(t.Context(), "x", redlock.WithAutoExtend(true))
	require.NoError(t, err)
	wait := 50 * time.Millisecond
	for _, how := range []string{"--no-wait", "--wait"} {
		if how == "--wait" {
			how += "=" + wait.String()
		}
		code, out, told := quorate(t, f, "run", "--quiet", how, "x", "--", "echo", "ran")
		for ; code == exitNoQuorum && wait < patience; wait *= 2 { // which was over before the nodes had answered
			code, out, told = quorate(t, f, "run", "--quiet", "--wait", wait.String(), "x", "--", "echo", "ran")
		}
		require.Equal(t, exitTaken, code, told)
		require.Empty(t, out)
		require.Regexp(t, `^quorate: .*"x" is held by somebody/\S+.*; free in [0-9.]+m?s, unless it is extended\n$`, told)
	}
	require.NoError(t, lease.Release(t.Context()))
}

func TestItWaitsForTheNameAndSaysForWhom(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	lease, err := newLocker(t, f).Acquire(t.Context(), "x", redlock.WithAutoExtend(true))
	require.NoError(t, err)
	c := begin(t, f, "run", "x", "--", "echo", "ran")
	c.says(`quorate: waiting: "x" is held by somebody/`)
	require.Empty(t, c.out.String())
	require.NoError(t, lease.Release(t.Context()))
	require.Zero(t, c.end())
	require.Equal(t, "ran\n", c.out.String())
}

func TestASignalEndsTheWaitingAndLeavesNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	lease, err := newLocker(t, f).Acquire(t.Context(), "x", redlock.WithAutoExtend(true))
	require.NoError(t, err)
	c := begin(t, f, "run", "x", "--", "echo", "ran")
	c.says("waiting")
	c.signals <- syscall.SIGUSR1 // means nothing to it
	c.signals <- syscall.SIGTERM
	require.Equal(t, exitSignal+15, c.end())
	require.Empty(t, c.out.String())
	require.NoError(t, lease.Release(t.Context()))
	requireFree(t, f, "x")
}

func TestSignalsArePassedOnToTheProgram(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	for name, s := range map[string]syscall.Signal{
		"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT,
		"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "WINCH": syscall.SIGWINCH,
	} {
		c := begin(t, f, "run", "x", "--", "sh", "-c", "trap 'exit 9' "+name+"; echo up; while :; do sleep 0.1; done")
		c.prints("up")
		c.signals <- s
		require.Equal(t, 9, c.end(), name)
		requireFree(t, f, "x")
	}
}

func TestAProgramThatDoesNotCatchASignalEndsByIt(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	c := begin(t, f, "run", "x", "--", "sh", "-c", "echo up; exec sleep 60")
	c.prints("up")
	c.signals <- syscall.SIGINT
	require.Equal(t, exitInterrupted, c.end())
}

// stubborn ignores TERM, and so does what it starts.
const stubborn = `trap '' TERM; sh -c 'while :; do sleep 1; done' & echo pid $!; while :; do sleep 1; done`

func TestAProgramThatIgnoresTERMIsDeadBeforeAnybodyElseCanHaveTheName(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	c := newCall(t)
	var left []time.Duration // of the locks, when the program was dead
	c.err.see = func(text string) {
		if strings.Contains(text, "was killed") {
			for i := range f.Len() {
				left = append(left, f.TTL(i, redlock.DefaultKeyPrefix+"x"))
			}
		}
	}
	c.begin(f, "run", "--ttl", "9s", "--grace", "4s", "x", "--", "sh", "-c", stubborn)
	pid := pidIn(t, c, "pid")
	machine := watchDelays(t)
	stopAll(f)
	require.Equal(t, exitLeaseLost, c.end())
	requireDead(t, pid)
	require.Len(t, left, 3, "it was not killed: %s", c.err)
	machine.requireLeft(t, left)
	for _, ttl := range left {
		require.Less(t, ttl, time.Second, "the program had no grace")
	}
	require.Contains(t, c.err.String(), "no majority of the nodes has extended it")
}

func stopAll(f *redlocktest.Fleet) {
	for i := range f.Len() {
		f.Stop(i)
	}
}

func TestAProgramThatEndsOnTERMHasItsGraceAndItsCodeIsNotPassed(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	c := begin(t, f, "run", "--ttl", "9s", "--grace", "4s", "x", "--", "sh", "-c", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 1; done")
	c.prints("up")
	stopAll(f)
	require.Equal(t, exitLeaseLost, c.end())
	require.Equal(t, "up\nbye\n", c.out.String())
	require.NotContains(t, c.err.String(), "killed")
}

func TestAProgramThatWasStoppedIsEndedWithTheLease(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	c := begin(t, f, "run", "--ttl", "9s", "--grace", "4s", "x", "--", "sh", "-c", "trap 'echo bye; exit 0' TERM; echo pid $$; kill -STOP $$; echo went on")
	pid := pidIn(t, c, "pid")
	stopAll(f)
	require.Equal(t, exitLeaseLost, c.end())
	requireDead(t, pid)
	require.Contains(t, c.out.String(), "bye", "it is to hear of TERM first")
}

func TestALeaseThatIsFreedByHandEndsTheProgram(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	c := begin(t, f, "run", "x", "--", "sh", "-c", "echo pid $$; sleep 60")
	pid := pidIn(t, c, "pid")
	lease := seize(t, f, "x")
	require.Equal(t, exitLeaseLost, c.end())
	requireDead(t, pid)
	require.Contains(t, c.err.String(), "not ours any more")
	require.NoError(t, lease.Err(), "the other's lease was touched")
}

// seize frees the name by hand and takes it at once.
func seize(t *testing.T, f *redlocktest.Fleet, name string) *redlock.Lease {
	t.Helper()
	locker := newLocker(t, f, lenient())
	for {
		free(t, f, name)
		lease, err := locker.TryAcquire(t.Context(), name, redlock.WithAutoExtend(true))
		if err == nil {
			return lease
		}
		require.ErrorIs(t, err, redlock.ErrTaken)
	}
}

func TestTheLeaseIsExtendedForTheMaximumDurationAndNoLonger(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	began := time.Now()
	code, _, told := quorate(t, f, "run", "--ttl", "6s", "--max-duration", "2s", "x", "--", "sleep", "60")
	require.Equal(t, exitLeaseLost, code)
	require.Contains(t, told, "--max-duration is over")
	require.Greater(t, time.Since(began), 2*time.Second)
	requireFree(t, f, "x")
}

func TestASignalToTheProcessReachesTheProgram(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	cmd := process(t, f, "run", "x", "--", "sh", "-c", "trap 'exit 9' HUP; echo up; while :; do sleep 1; done")
	out := &buffer{}
	cmd.Stdout = out
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return out.String() == "up\n" }, patience, time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	_ = cmd.Wait()
	require.Equal(t, 9, cmd.ProcessState.ExitCode())
	requireFree(t, f, "x")
}

func TestASignalThatIsIgnoredAtTheStartStaysIgnored(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	quorate := process(t, f, "run", "x", "--", "sh", "-c", "echo pid $PPID; while :; do sleep 0.05; done")
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `trap '' HUP; exec "$0" "$@"`}, append([]string{quorate.Path}, quorate.Args[1:]...)...)...)
	cmd.Env = quorate.Env
	cmd.WaitDelay = time.Second
	out := &buffer{}
	cmd.Stdout = out
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return strings.HasSuffix(out.String(), "\n") }, patience, time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	_ = cmd.Wait()
	require.Equal(t, exitSignal+15, cmd.ProcessState.ExitCode(), "HUP has ended it, as nohup was to prevent")
}

func TestAPipeThatNobodyReadsIsNoNoiseAndLeavesNoLease(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, read.Close())
	defer write.Close()

	told := &buffer{}
	cmd := process(t, nil, "man")
	cmd.Stdout, cmd.Stderr = write, told
	_ = cmd.Run()
	require.Equal(t, exitPipe, cmd.ProcessState.ExitCode())
	require.Empty(t, told.String())

	// The program has the usual SIGPIPE, and quorate's own lines are no reason to end before the release.
	lease, err := newLocker(t, f).Acquire(t.Context(), "x", redlock.WithAutoExtend(true))
	require.NoError(t, err)
	cmd = process(t, f, "run", "--wait", "4s", "x", "--", "true")
	cmd.Stderr = write
	_ = cmd.Run()
	require.Equal(t, exitTaken, cmd.ProcessState.ExitCode(), "it has ended at a line to stderr")
	require.NoError(t, lease.Release(t.Context()))
	cmd = process(t, f, "run", "x", "--", "sh", "-c", "yes; exit 5")
	cmd.Stdout = write
	_ = cmd.Run()
	require.Equal(t, 5, cmd.ProcessState.ExitCode())
	requireFree(t, f, "x")
}
