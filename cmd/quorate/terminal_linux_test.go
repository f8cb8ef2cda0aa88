package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A screen is a terminal with somebody at it.
type screen struct {
	t     *testing.T
	hands *os.File
	shown *buffer
	cmd   *exec.Cmd
}

// sit runs a process in a session of its own on a new terminal.
func sit(t *testing.T, cmd *exec.Cmd) *screen {
	t.Helper()
	hands, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	fd := int(hands.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	defer tty.Close()

	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	require.NoError(t, cmd.Start())
	s := &screen{t: t, hands: hands, shown: &buffer{}, cmd: cmd}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(s.shown, hands) // until the last who has it open has closed it
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		_ = hands.Close()
		<-read
	})
	return s
}

func (s *screen) shows(text string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return strings.Contains(s.shown.String(), text) }, patience, time.Millisecond,
		"the screen lacks %q", text)
}

func (s *screen) types(text string) {
	s.t.Helper()
	_, err := io.WriteString(s.hands, text)
	require.NoError(s.t, err)
}

func (s *screen) end() int {
	s.t.Helper()
	_ = s.cmd.Wait()
	return s.cmd.ProcessState.ExitCode()
}

func TestAProgramReadsTheTerminalThatQuorateHas(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	s := sit(t, process(t, f, "run", "x", "--", "sh", "-c", `echo ready; read line; echo "got <$line>"; exit 4`))
	s.shows("ready")
	s.types("words\n")
	s.shows("got <words>")
	require.Equal(t, 4, s.end())
}

func TestCtrlCAtTheTerminalIsThePrograms(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	s := sit(t, process(t, f, "run", "x", "--", "sh", "-c", `trap 'echo interrupts: $((n+=1))' INT; echo ready; read line; read line; exit 6`))
	s.shows("ready")
	s.types("\x03")
	s.shows("interrupts: 1")
	s.types("a\nb\n")
	require.Equal(t, 6, s.end())
	require.NotContains(t, s.shown.String(), "interrupts: 2", "quorate has passed it on as well")
	requireFree(t, f, "x")
}

func TestCtrlZStopsQuorateWithTheProgramAndBothGoOn(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	program, err := os.Executable()
	require.NoError(t, err)
	// A shell with job control, as people have.
	shell := exec.Command("bash", "-c", `set -m
"$0" run x -- sh -c 'echo ready; read line; echo "got <$line>"; exit 4'
echo "shell again: $?"
fg >/dev/null
echo "ended: $?"`, program)
	shell.Env = process(t, f).Env
	s := sit(t, shell)
	s.shows("ready")
	s.types("\x1a")
	s.shows("shell again: 148") // 128 + SIGTSTP
	s.types("words\n")
	s.shows("got <words>")
	s.shows("ended: 4")
	require.Zero(t, s.end())
	requireFree(t, f, "x")
}

func TestAProgramThatWasLeftAtCtrlZForTooLongDoesNotGoOn(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	program, err := os.Executable()
	require.NoError(t, err)
	shell := exec.Command("bash", "-c", `set -m
"$0" run --ttl 4s x -- sh -c 'echo ready; read line; echo "got <$line>"; while read line; do echo "got <$line>"; done'
echo "shell again"
read enough
fg >/dev/null
echo "ended: $?"`, program)
	shell.Env = process(t, f).Env
	s := sit(t, shell)
	s.shows("ready")
	s.types("\x1a")
	s.shows("shell again")
	require.Eventually(t, func() bool {
		return f.TTL(0, "quorate:x") == 0 && f.TTL(1, "quorate:x") == 0 && f.TTL(2, "quorate:x") == 0
	},
		patience, time.Millisecond, "it is extended though it is stopped")
	s.types("enough\nwords\n")
	s.shows("ended: 122")
	require.NotContains(t, s.shown.String(), "got <words")
	require.Zero(t, s.end())
}

func TestAProgramInAPipelineIsNotGivenTheTerminal(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	program, err := os.Executable()
	require.NoError(t, err)
	shell := exec.Command("bash", "-c", `set -m
"$0" run x -- sh -c 'sleep 0.1; echo word' | sh -c 'read word; read line </dev/tty; echo "$word <$line>"'`, program)
	shell.Env = process(t, f).Env
	s := sit(t, shell)
	s.types("typed\n")
	s.shows("word <typed>")
	require.Zero(t, s.end())
}
