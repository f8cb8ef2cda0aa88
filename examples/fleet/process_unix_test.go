//go:build unix

package main

import (
	"bufio"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var startedLine = regexp.MustCompile(`replica \d+ is started, process (\d+)`)

// until reads lines to the first that contains a text, and returns the processes of the
// replicas that were started so far.
func until(t *testing.T, lines *bufio.Scanner, text string) (processes []int) {
	t.Helper()
	for lines.Scan() {
		if m := startedLine.FindStringSubmatch(lines.Text()); m != nil {
			pid, err := strconv.Atoi(m[1])
			require.NoError(t, err)
			processes = append(processes, pid)
		}
		if strings.Contains(lines.Text(), text) {
			return processes
		}
	}
	require.Failf(t, "the output ended early", "before %q", text)
	return nil
}

func assertGone(t *testing.T, processes []int) {
	t.Helper()
	require.NotEmpty(t, processes)
	for _, pid := range processes {
		assert.Eventually(t, func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) },
			10*time.Second, 20*time.Millisecond, "process %d is left", pid)
	}
}

func TestNoReplicaIsLeftBehindWhenTheParentIsKilledNotEvenAFrozenOne(t *testing.T) {
	t.Parallel()
	cmd := fleet(t, "-for", "10s")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	processes := until(t, bufio.NewScanner(out), "is frozen there")
	require.NoError(t, cmd.Process.Kill())
	_, _ = io.Copy(io.Discard, out) // to the end of the replicas, which do not write to it
	_ = cmd.Wait()
	assertGone(t, processes)
}

func TestAnInterruptEndsTheRunInOrderAndItIsCounted(t *testing.T) {
	t.Parallel()
	cmd := fleet(t, "-for", "10m")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	processes := until(t, lines, "runs tick")
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	until(t, lines, "Nothing was doubled")
	_, _ = io.Copy(io.Discard, out)
	require.NoError(t, cmd.Wait())
	assertGone(t, processes)
}
