//go:build unix

package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnInterruptEndsTheSaleAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	require.NoError(t, err)
	tmp := t.TempDir()
	cmd := exec.Command(program, "-database", "sqlite", "-units", "1000000", "-buyers", "10")
	cmd.Env = append(os.Environ(), parentVariable+"=1", "TMPDIR="+tmp)
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "sale:") {
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	_, err = io.Copy(io.Discard, out) // to the end of the program
	require.NoError(t, err)
	require.Error(t, cmd.Wait())
	assert.Equal(t, 2, cmd.ProcessState.ExitCode())
	assert.Contains(t, errOut.String(), "interrupt")
	left, err := os.ReadDir(tmp)
	require.NoError(t, err)
	assert.Empty(t, left)
}
