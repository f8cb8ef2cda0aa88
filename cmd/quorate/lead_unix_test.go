//go:build unix

package main

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
)

// waits is a program that runs until it is told to end.
const waits = `trap 'echo bye; exit 0' TERM; echo up $QUORATE_NAME $QUORATE_TERM $QUORATE_TOKEN; while :; do sleep 1; done`

func TestTheProgramRunsWhileItLeadsAndEndsInOrder(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	c := begin(t, f, "lead", "--address", "10.0.0.1:80", "--label", "zone=a,rack=7", "billing", "--", "sh", "-c", waits)
	c.prints("up billing ")
	elector, err := leader.New(newLocker(t, f, lenient()), "billing")
	require.NoError(t, err)
	term, err := elector.Leader(t.Context())
	require.NoError(t, err)
	require.Equal(t, "10.0.0.1:80", term.Address)
	require.Equal(t, map[string]string{"zone": "a", "rack": "7"}, term.Labels)
	n := term.Number.String()
	require.Contains(t, c.out.String(), "up billing "+n+" "+n+"\n")

	other := begin(t, f, "lead", "billing", "--", "sh", "-c", waits)
	c.signals <- syscall.SIGTERM
	require.Zero(t, c.end(), c.err)
	require.True(t, strings.HasSuffix(c.out.String(), "bye\n"))
	require.Contains(t, c.err.String(), "stopped")

	other.prints("up") // at once, though the TTL is 8 s
	other.signals <- syscall.SIGINT
	require.Zero(t, other.end())
	requireFree(t, f, "billing")
}

func TestAProgramThatEndsGivesTheOfficeUpAndStandsAgain(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	c := begin(t, f, "lead", "--ttl", "1s", "billing", "--", "sh", "-c", "echo term; exit 0")
	require.Eventually(t, func() bool { return strings.Count(c.out.String(), "term") >= 3 }, patience, time.Millisecond)
	c.signals <- syscall.SIGTERM
	require.Zero(t, c.end(), c.err)
	requireFree(t, f, "billing")
}

func TestOnceEndsWithTheProgramAndItsCode(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -KILL $$": 137} {
		code, _, told := quorate(t, f, "lead", "--once", "billing", "--", "sh", "-c", script)
		require.Equal(t, want, code, told)
		requireFree(t, f, "billing")
	}
	code, _, told := quorate(t, f, "lead", "--once", "billing", "--", filepath.Join(t.TempDir(), "none"))
	require.Equal(t, exitNotFound, code, told)
}

func TestOnceIs122WhenTheLeaseEnds(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	c := newCall(t)
	var left []time.Duration
	c.err.see = func(text string) {
		if strings.Contains(text, "was killed") {
			for i := range f.Len() {
				left = append(left, f.TTL(i, redlock.DefaultKeyPrefix+"billing"))
			}
		}
	}
	c.begin(f, "lead", "--once", "billing", "--", "sh", "-c", stubborn)
	pid := pidIn(t, c, "pid")
	machine := watchDelays(t)
	stopAll(f)
	require.Equal(t, exitLeaseLost, c.end(), c.err)
	requireDead(t, pid)
	require.Len(t, left, 3)
	machine.requireLeft(t, left)
}

func TestASecondSignalKillsAProgramThatTakesItsTime(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	c := begin(t, f, "lead", "--stop-grace", "1h", "billing", "--", "sh", "-c", stubborn)
	pid := pidIn(t, c, "pid")
	c.signals <- syscall.SIGTERM
	c.signals <- syscall.SIGTERM
	require.Zero(t, c.end(), c.err)
	requireDead(t, pid)
	requireFree(t, f, "billing")
}

func TestAProgramThatOutlivesTheStopGraceIsKilled(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	c := begin(t, f, "lead", "--stop-grace", "100ms", "billing", "--", "sh", "-c", stubborn)
	pid := pidIn(t, c, "pid")
	c.signals <- syscall.SIGTERM
	require.Zero(t, c.end(), c.err)
	requireDead(t, pid)
	require.Contains(t, c.err.String(), "was killed")
	requireFree(t, f, "billing")
}

func TestOtherSignalsGoToTheProgramThatLeads(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	c := begin(t, f, "lead", "--once", "billing", "--", "sh", "-c", "trap 'exit 9' USR2; echo up; while :; do sleep 1; done")
	c.prints("up")
	c.signals <- syscall.SIGUSR2
	require.Equal(t, 9, c.end(), c.err)
}

func TestAReplicaThatIsNotWellDoesNotLead(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	ill := filepath.Join(t.TempDir(), "ill")
	c := begin(t, f, "lead", "--health-cmd", "if [ -e "+ill+" ]; then echo no database; exit 1; fi", "--health-every", "2s",
		"billing", "--", "sh", "-c", waits)
	c.prints("up")
	require.NoError(t, os.WriteFile(ill, nil, 0o600))
	c.prints("bye")
	c.says("no database; this replica does not lead")
	require.NoError(t, os.Remove(ill))
	require.Eventually(t, func() bool { return strings.Count(c.out.String(), "up") >= 2 }, patience, time.Millisecond)
	c.signals <- syscall.SIGTERM
	require.Zero(t, c.end())
}

func TestAHealthCheckThatHangsIsEndedWithWhatItStarted(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	pids := filepath.Join(t.TempDir(), "pids")
	c := begin(t, f, "lead", "--ttl", "1s", "--health-cmd", "sleep 600 & echo $! >>"+pids+"; wait", "--health-every", "100ms",
		"billing", "--", "echo", "ran")
	c.says("this replica does not lead")
	require.Eventually(t, func() bool { // a busy machine may end some before they have written it
		text, err := os.ReadFile(pids)
		return err == nil && strings.HasSuffix(string(text), "\n")
	}, patience, time.Millisecond)
	c.signals <- syscall.SIGTERM
	require.Zero(t, c.end())
	require.Empty(t, c.out.String())
	text, err := os.ReadFile(pids)
	require.NoError(t, err)
	for field := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(field)
		require.NoError(t, err)
		requireDead(t, pid)
	}
}

func TestAHealthCheckMayLeaveSomethingRunning(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	c := begin(t, f, "lead", "--health-cmd", "sleep 5 &", "--health-every", "4s",
		"billing", "--", "sh", "-c", waits)
	c.prints("up")
	require.NotContains(t, c.err.String(), "does not lead")
	c.signals <- syscall.SIGTERM
	require.Zero(t, c.end())
}

func TestLivenessProbesAreServedUntilTheEnd(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	code, _, told := quorate(t, f, "lead", "--healthz", address, "billing", "--", "true")
	require.Equal(t, exitFailed, code)
	require.Contains(t, told, "--healthz")
	require.NoError(t, listener.Close())

	var c *call
	for taken := true; taken; { // by somebody else, until there is an address that is free
		c = begin(t, f, "lead", "--healthz", address, "billing", "--", "sh", "-c", waits)
		require.Eventually(t, func() bool {
			taken = strings.Contains(c.err.String(), "--healthz")
			return taken || strings.Contains(c.out.String(), "up")
		}, patience, time.Millisecond, "%s", c.err)
		if taken {
			require.Equal(t, exitFailed, c.end())
			address = freeAddress(t)
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://" + address + "/healthz")
	require.NoError(t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.Contains(t, string(body), "billing")
	c.signals <- syscall.SIGTERM
	require.Zero(t, c.end())
	_, err = client.Get("http://" + address + "/healthz")
	require.Error(t, err)
}

// freeAddress is one at which nothing listens, for now.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

func TestACandidateSaysWhatKeepsItWaiting(t *testing.T) {
	t.Parallel()
	c := newCall(t).begin(nil, "--nodes", urls("127.0.0.1:1"), "lead", "billing", "--", "echo", "ran")
	c.says("node does not answer")
	c.signals <- syscall.SIGHUP
	require.Zero(t, c.end())
	require.Empty(t, c.out.String())
}
