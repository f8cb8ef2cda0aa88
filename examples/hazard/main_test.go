package main

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/redlock"
)

// parentVariable makes the test binary the program. As the program does, it starts itself again
// for each holder.
const parentVariable = "QUORATE_HAZARD_TEST_PARENT"

func TestMain(m *testing.M) {
	if cfg, ok, err := inherited(); ok {
		os.Exit(holderMain(cfg, err))
	}
	if os.Getenv(parentVariable) != "" {
		os.Exit(storyMain(os.Args[1:], os.Stdout, os.Stderr))
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
	cmd.Env = append(os.Environ(), parentVariable+"=1")
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil {
		require.ErrorAs(t, err, &exit)
	}
	t.Logf("hazard %v:\n%s", args, &out)
	return out.String(), cmd.ProcessState.ExitCode()
}

func TestTheLateWriteLandsWithoutAGateAndIsRefusedWithOne(t *testing.T) {
	t.Parallel()
	var output string
	exitCode := -1
	for _, ttl := range []string{"500ms", "2s", "8s"} { // on a busy machine, nobody holds a short lease for long enough
		if output, exitCode = run(t, "-ttl", ttl); exitCode == 0 {
			break
		}
	}
	assert.Zero(t, exitCode)
	without, with, found := bytes.Cut([]byte(output), []byte("WITH A GATE"))
	require.True(t, found)
	assert.Contains(t, string(without), "2 sold, 1 gone from the store: OVERSOLD by 1")
	assert.NotContains(t, string(without), "refused")
	assert.Contains(t, string(with), "is refused: stale token")
	assert.Contains(t, string(with), "1 sold, 1 gone from the store: the late write did no harm")
	assert.NotContains(t, string(with), "OVERSOLD")
}

func TestAStoryThatWentOtherwiseIsToldSo(t *testing.T) {
	t.Parallel()
	tokens := map[string]redlock.Token{"A": 33, "B": 34}
	for name, c := range map[string]struct {
		story  story
		asTold bool
	}{
		"the late write landed":                    {story{tokens: tokens, sold: 2, left: 9}, true},
		"it was not late":                          {story{tokens: tokens, sold: 2, left: 8}, false},
		"the gate refused it":                      {story{cfg: config{Gate: true}, tokens: tokens, sold: 1, left: 9, refused: true}, true},
		"the gate let it pass":                     {story{cfg: config{Gate: true}, tokens: tokens, sold: 2, left: 9}, false},
		"the gate refused it and it landed though": {story{cfg: config{Gate: true}, tokens: tokens, sold: 2, left: 9, refused: true}, false},
	} {
		var out bytes.Buffer
		c.story.out = &out
		assert.Equal(t, c.asTold, c.story.verdict(), name)
		assert.Equal(t, c.asTold, !bytes.Contains(out.Bytes(), []byte("did not go as told")), name)
	}
}

func TestFlagsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	for says, args := range map[string][]string{
		"not between":         {"-ttl", "1ms"},
		"unexpected argument": {"now"},
		"not defined":         {"-x"},
	} {
		output, exitCode := run(t, args...)
		assert.Equal(t, 2, exitCode)
		assert.Contains(t, output, says)
	}
	output, exitCode := run(t, "-h")
	assert.Zero(t, exitCode)
	assert.Contains(t, output, "-ttl")
}
