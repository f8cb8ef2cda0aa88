package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

const (
	// soon is how long a test waits for what should come at once, on a loaded machine.
	soon = 30 * time.Second
	poll = 50 * time.Millisecond
)

// binary is the command, built once.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "quorate-command")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "quorate")
	build := exec.Command("go", "build", "-o", binary, "./cmd/quorate")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the command: %v\n%s", err, out)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// An outcome is what a process has come to.
type outcome struct {
	code     int
	out, err string
}

// quorate runs the command to its end, which has to come soon.
func quorate(t *testing.T, urls []string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*soon)
	defer cancel()
	var out, told bytes.Buffer
	c := exec.CommandContext(ctx, binary, args...)
	c.Env = environment(urls)
	c.Stdout, c.Stderr = &out, &told
	err := c.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(t, err, told.String())
	}
	require.NoError(t, ctx.Err(), "it does not end")
	return outcome{c.ProcessState.ExitCode(), out.String(), told.String()}
}

// environment is ours, but for settings of the command.
func environment(urls []string) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "QUORATE_") })
	return append(env, "QUORATE_NODES="+strings.Join(urls, ","))
}

// A finding is a line of the doctor.
type finding struct{ Verdict, Node, Check, Found, Advice string }

type diagnosis struct {
	Verdict  string
	Findings []finding
}

// diagnose runs the doctor.
func diagnose(t *testing.T, urls []string, args ...string) (diagnosis, outcome) {
	t.Helper()
	got := quorate(t, urls, append([]string{"doctor", "-o", "json"}, args...)...)
	var d diagnosis
	require.NoError(t, json.Unmarshal([]byte(got.out), &d), got.out+got.err)
	require.Empty(t, got.err, "the lines say it")
	return d, got
}

// has reports whether a check has found something with these words.
func (d *diagnosis) has(verdict, check string, words ...string) bool {
	return slices.ContainsFunc(d.Findings, func(f finding) bool {
		text := f.Node + ": " + f.Found + "; " + f.Advice
		return f.Verdict == verdict && f.Check == check &&
			!slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
	})
}

func (d *diagnosis) require(t *testing.T, verdict, check string, words ...string) {
	t.Helper()
	require.True(t, d.has(verdict, check, words...), "no %s of %s with %q in %+v", verdict, check, words, d.Findings)
}
