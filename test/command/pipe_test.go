package command_test

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/test/redisserver"
)

func TestAPipeThatNobodyReadsEndsTheCommandWithoutNoise(t *testing.T) {
	t.Parallel()
	server := redisserver.Start(t)
	for _, args := range [][]string{{"ls"}, {"show", "a"}, {"doctor"}, {"watch", "a"}} {
		read, write, err := os.Pipe()
		require.NoError(t, err)
		require.NoError(t, read.Close())
		var told bytes.Buffer
		c := exec.CommandContext(t.Context(), binary, args...)
		c.Env = environment(urlsOf(server))
		c.Stdout, c.Stderr = write, &told
		require.NoError(t, c.Start())
		require.NoError(t, write.Close())
		require.Error(t, c.Wait())
		require.Equal(t, 141, c.ProcessState.ExitCode(), "%v: %s", args, told.String())
		if args[0] != "ls" { // which hints that nothing is held
			require.Empty(t, told.String(), "%v", args)
		}
	}
}
