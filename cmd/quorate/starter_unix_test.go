//go:build unix

package main

import (
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// programOf is a shell's, as quorate would run it, and what it prints.
func programOf(t *testing.T, script string) (cmd *exec.Cmd, out *buffer) {
	t.Helper()
	out = &buffer{}
	cmd = exec.CommandContext(t.Context(), "/bin/sh", "-c", script)
	cmd.Stdout = out
	setGroup(cmd)
	return cmd, out
}

func TestAProgramBeginsOnceItsGroupIsKnown(t *testing.T) {
	t.Parallel()
	s, err := newStarter()
	require.NoError(t, err)
	known := filepath.Join(t.TempDir(), "known")
	cmd, out := programOf(t, `cat "$0"; echo " $$"`)
	cmd.Args = append(cmd.Args, known)
	require.NoError(t, s.start(cmd, func(group int) {
		pgid, err := syscall.Getpgid(group)
		require.NoError(t, err)
		require.Equal(t, group, pgid)
		time.Sleep(100 * time.Millisecond) // in which a program that does not wait would have looked for the file
		require.NoError(t, os.WriteFile(known, []byte("known"), 0o600))
	}))
	require.NoError(t, cmd.Wait())
	require.Equal(t, "known "+strconv.Itoa(cmd.Process.Pid)+"\n", out.String())
}

func TestAStarterEndsWhenWhoeverStartedItHasEndedFirst(t *testing.T) {
	t.Parallel()
	s, err := newStarter()
	require.NoError(t, err)
	ours, theirs, err := newLine()
	require.NoError(t, err)
	begun := filepath.Join(t.TempDir(), "begun")
	cmd := exec.CommandContext(t.Context(), s.path, starterArgument, "3", "/bin/sh", "sh", "-c", "echo > "+begun)
	cmd.ExtraFiles = []*os.File{theirs}
	require.NoError(t, cmd.Start())
	require.NoError(t, theirs.Close())
	require.NoError(t, ours.Close())
	require.Error(t, cmd.Wait())
	require.Equal(t, exitFailed, cmd.ProcessState.ExitCode())
	require.NoFileExists(t, begun)
}

func TestAStarterTellsWhyAProgramCannotBeStarted(t *testing.T) {
	t.Parallel()
	s, err := newStarter()
	require.NoError(t, err)
	script := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o700)) //nolint:gosec // has to be executable
	known := 0
	cmd := exec.CommandContext(t.Context(), script)
	err = s.start(cmd, func(group int) { known = group })
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, script)
	require.Equal(t, cmd.Process.Pid, known)
	require.NotNil(t, cmd.ProcessState, "nobody has waited for the starter")
}

func TestAProgramIsGivenTheDescriptorsThatQuorateWasGiven(t *testing.T) {
	t.Parallel()
	given := filepath.Join(t.TempDir(), "given")
	require.NoError(t, os.WriteFile(given, []byte("what is given"), 0o600))
	f, err := os.Open(given)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	cmd := process(t, newFleet(t), "run", "x", "--", "sh", "-c", "cat <&3; ls /dev/fd/4 >&2")
	cmd.ExtraFiles = []*os.File{f}
	errs := &buffer{}
	cmd.Stderr = errs
	out, err := cmd.Output()
	require.Equal(t, "what is given", string(out), errs)
	require.Error(t, err, "the program was given more than that")
}

func TestAProgramIsStartedThoughTheFileOfQuorateIsGone(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/exe"); err != nil {
		t.Skip("this system has no way to start a program whose file is gone")
	}
	cmd := process(t, newFleet(t), "cron", "x", "@every 1s", "--", "sh", "-c", "test ! -e "+`"$QUORATE_TEST_FILE"`+" && echo gone")
	file := filepath.Join(t.TempDir(), "quorate")
	copyFile(t, cmd.Path, file)
	cmd.Path = file
	cmd.Env = append(cmd.Env, "QUORATE_TEST_FILE="+file)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, os.Remove(file))
	line := make([]byte, 4)
	_, err = io.ReadFull(out, line)
	require.NoError(t, err)
	require.Equal(t, "gone", string(line))
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	_, _ = io.Copy(io.Discard, out)
	require.NoError(t, cmd.Wait())
}

// copyFile copies a program.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, data, 0o700)) //nolint:gosec // has to be executable
}
