package main

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// parentVariable makes the test binary the program. As the program does, it starts itself again
// for each replica.
const parentVariable = "QUORATE_FLEET_TEST_PARENT"

func TestMain(m *testing.M) {
	if cfg, ok, err := inherited(); ok {
		os.Exit(replicaMain(cfg, err))
	}
	if os.Getenv(parentVariable) != "" {
		os.Exit(parentMain(os.Args[1:], os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

// fleet is the program as a process.
func fleet(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), parentVariable+"=1")
	return cmd
}

// run runs the program to its end.
func run(t *testing.T, args ...string) (output string, exitCode int) {
	t.Helper()
	var out bytes.Buffer
	cmd := fleet(t, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil {
		require.ErrorAs(t, err, &exit)
	}
	t.Logf("fleet %v:\n%s", args, &out)
	return out.String(), cmd.ProcessState.ExitCode()
}
