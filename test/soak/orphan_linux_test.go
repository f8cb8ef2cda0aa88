package main

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/test/rig"
)

// children are the processes whose parent is pid.
func children(pid int) []int {
	var found []int
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		// The name, in brackets, may hold anything; the state and the parent follow.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(pid) && fields[0] != "Z" {
			found = append(found, child)
		}
	}
	return found
}

func TestNothingOutlivesAHarnessThatIsKilled(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	harness := exec.Command(self)
	harness.Env = append(os.Environ(), harnessEnv+"=-for=1m", "TMPDIR="+t.TempDir())
	require.NoError(t, harness.Start())
	defer func() { _ = harness.Wait() }()
	defer func() { _ = harness.Process.Kill() }()

	const all = 5 + 1 + 8 // nodes, the resource, clients
	var pids []int
	require.Eventually(t, func() bool {
		pids = children(harness.Process.Pid)
		return len(pids) == all
	}, time.Minute, 20*time.Millisecond, "all of them run")
	stopped, err := os.FindProcess(pids[all-1])
	require.NoError(t, err)
	require.NoError(t, stopped.Signal(rig.SigStop), "a client that is stopped ends as well")

	require.NoError(t, harness.Process.Kill())
	require.Eventually(t, func() bool {
		for _, pid := range pids {
			stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
			if err == nil && !bytes.Contains(stat, []byte(") Z ")) {
				return false
			}
		}
		return true
	}, time.Minute, 20*time.Millisecond, "none of %v is left", pids)
}
