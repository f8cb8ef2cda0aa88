package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// tellDeathSignal, in the environment, has the test's binary print the signal that it is sent when its parent ends.
const tellDeathSignal = "TEST_TELL_DEATH_SIGNAL"

func init() {
	if os.Getenv(tellDeathSignal) == "" || len(os.Args) > 1 { // a starter has it as well
		return
	}
	var sig int32
	_, _, errno := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&sig)), 0)
	fmt.Println(syscall.Signal(sig), errno)
	os.Exit(0)
}

// Only sometimes is the starter on another thread when it becomes the program; least seldom with much to collect.
func TestAProgramDiesWithAQuorateWhoseGuardIsDead(t *testing.T) {
	s, err := newStarter()
	require.NoError(t, err)
	program, err := os.Executable()
	require.NoError(t, err)
	runtime.LockOSThread() // the parent that counts
	defer runtime.UnlockOSThread()
	for i := range 30 {
		out := &buffer{}
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Env = append(os.Environ(), tellDeathSignal+"=1", "GOGC=1", "GOMAXPROCS=1")
		cmd.Stdout = out
		setGroup(cmd)
		require.NoError(t, s.start(cmd, func(int) { time.Sleep(time.Duration(i%10) * time.Millisecond) }))
		require.NoError(t, cmd.Wait())
		require.Equal(t, "killed errno 0\n", out.String())
	}
}
