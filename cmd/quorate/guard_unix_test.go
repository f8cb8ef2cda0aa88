//go:build unix

package main

import (
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

// runs starts a quorate of its own, and gives the process ids that its program prints.
func runs(t *testing.T, f *redlocktest.Fleet, args ...string) (cmd *exec.Cmd, program, offspring int) {
	t.Helper()
	args = append(args, "--", "sh", "-c",
		"trap '' TERM HUP; sh -c 'while :; do sleep 1; done' & echo pids $$ $!; while :; do sleep 1; done")
	cmd = process(t, f, args...)
	out := &buffer{}
	cmd.Stdout = out
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return strings.HasSuffix(out.String(), "\n") }, patience, time.Millisecond)
	_, err := fmt.Sscanf(out.String(), "pids %d %d", &program, &offspring)
	require.NoError(t, err)
	return cmd, program, offspring
}

func TestAProgramDiesWithAQuorateThatIsKilledAndSoDoesItsOffspring(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	for _, args := range [][]string{{"run", "x"}, {"lead", "y"}, {"cron", "z", "@every 1s"}} {
		cmd, program, offspring := runs(t, f, args...)
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
		require.Eventually(t, func() bool { return !alive(t, program) && !alive(t, offspring) }, patience, time.Millisecond, args)
	}
}

func TestAProgramIsDeadInTimeThoughQuorateIsStopped(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	cmd, program, offspring := runs(t, f, "run", "--ttl", "9s", "x")
	machine := watchDelays(t)
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	require.Eventually(t, func() bool { return !alive(t, program) && !alive(t, offspring) }, patience, time.Millisecond)
	var left []time.Duration
	for i := range f.Len() {
		left = append(left, f.TTL(i, redlock.DefaultKeyPrefix+"x"))
	}
	machine.requireLeft(t, left)
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	_ = cmd.Wait()
	require.Equal(t, exitLeaseLost, cmd.ProcessState.ExitCode())
}

func TestTheGuardIsPatientWhileItIsToldAndForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines, w := io.Pipe()
		var mu sync.Mutex
		var killed []int
		dead := func() []int {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(killed)
		}
		began := time.Now()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			runGuard(lines, func(group int) {
				mu.Lock()
				defer mu.Unlock()
				killed = append(killed, group)
			})
		}()
		for range 10 {
			_, err := io.WriteString(w, "1 1000\n2 1500\n3 1000\n4 3600000\n")
			require.NoError(t, err)
			time.Sleep(900 * time.Millisecond)
		}
		_, err := io.WriteString(w, "3 -1\nnonsense\n")
		require.NoError(t, err)
		time.Sleep(101 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, []int{1}, dead(), "after %v", time.Since(began))
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, []int{1, 2}, dead())
		require.NoError(t, w.Close())
		<-ended
		require.Equal(t, []int{1, 2, 4}, dead(), "what is left is killed at the end")
	})
}
