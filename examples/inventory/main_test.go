package main

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// parentVariable makes the test binary the program. As the program does, it starts itself again
// for each replica.
const parentVariable = "QUORATE_INVENTORY_TEST_PARENT"

func TestMain(m *testing.M) {
	if cfg, ok, err := inherited(); ok {
		os.Exit(replicaMain(cfg, err))
	}
	if os.Getenv(parentVariable) != "" {
		os.Exit(parentMain(os.Args[1:], os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

// run runs the program to its end.
func run(t *testing.T, args ...string) (output string, exitCode int) {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	var out bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), parentVariable+"=1", "DATABASE_URL=")
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil {
		require.ErrorAs(t, err, &exit)
	}
	t.Logf("inventory %v:\n%s", args, &out)
	return out.String(), cmd.ProcessState.ExitCode()
}

// figures finds a row of the table, by way.
func figures(t *testing.T, output, name string) map[way]int {
	t.Helper()
	for line := range strings.Lines(output) {
		if rest, found := strings.CutPrefix(line, name+" "); found {
			of := map[way]int{}
			for i, field := range strings.Fields(rest)[:len(ways)] {
				n, err := strconv.Atoi(field)
				require.NoError(t, err, line)
				of[ways[i]] = n
			}
			return of
		}
	}
	require.Failf(t, "no such row", "%q", name)
	return nil
}

func testASale(t *testing.T, database, says string) {
	t.Helper()
	const units = 240
	output, exitCode := run(t, "-database", database, "-units", strconv.Itoa(units), "-buyers", "40", "-freeze", "1500ms")
	assert.Zero(t, exitCode)
	assert.Contains(t, output, says)
	for _, w := range []way{rowLock, guarded, batched} {
		assert.Equal(t, units, figures(t, output, "units sold")[w], w)
		assert.Equal(t, units, figures(t, output, "units gone")[w], w)
		assert.Zero(t, figures(t, output, "oversold")[w], w)
		assert.Zero(t, figures(t, output, "lost updates")[w], w)
		assert.Contains(t, output, string(w)+strings.Repeat(" ", 9-len(w))+" right: ")
	}
	assert.Zero(t, figures(t, output, "stale sales refused")[noGuard])
	assert.Zero(t, figures(t, output, "stale sales refused")[rowLock])
	if canFreeze {
		assert.Contains(t, output, "its late write landed")
		assert.Positive(t, figures(t, output, "lost updates")[noGuard])
		assert.Positive(t, figures(t, output, "stale sales refused")[guarded])
		assert.Positive(t, figures(t, output, "stale sales refused")[batched])
	}
}

func TestTheGuardedWaysSellEachUnitOnceOnSQLite(t *testing.T) {
	t.Parallel()
	testASale(t, "sqlite", "database: SQLite")
}

// PostgreSQL has to be installed: scripts/install-databases does that.
func TestTheGuardedWaysSellEachUnitOnceOnPostgreSQL(t *testing.T) {
	t.Parallel()
	testASale(t, "postgres", "database: PostgreSQL")
}

func TestFlagsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	for says, args := range map[string][]string{
		"have to be at least 1":   {"-units", "0"},
		"without any":             {"-buyers", "2"},
		"not longer than the TTL": {"-freeze", "500ms"},
		"more than 20s":           {"-freeze", "1m"},
		"unexpected argument":     {"now"},
		"not defined":             {"-x"},
		"is no postgres:// URL":   {"-database", "mysql"},
	} {
		output, exitCode := run(t, args...)
		assert.Equal(t, 2, exitCode)
		assert.Contains(t, output, says)
	}
	output, exitCode := run(t, "-h")
	assert.Zero(t, exitCode)
	assert.Contains(t, output, "-freeze")
}
