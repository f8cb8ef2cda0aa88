package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// A mutant is one safety rule switched off.
type mutant struct {
	name string // the rule
	file string // from the root of the module
	old  string // found exactly once
	new  string
	flag string // of the model's mutant that is the same, or empty
	test string // of the rule itself, where neither can see it: package and name
}

// A result is what came of a mutant.
type result struct {
	mutant
	caught bool
	seeds  int
	took   time.Duration
	how    string // the first promise that was seen broken
	model  string // what the model says of it
	tested bool   // its own test fails
	err    error
}

func (r *result) line() string {
	switch {
	case r.err != nil:
		return fmt.Sprintf("%-44s %v", r.name, r.err)
	case r.caught:
		return fmt.Sprintf("%-44s caught after %d seeds, %v: %s", r.name, r.seeds, r.took.Round(time.Second), r.how)
	case r.tested:
		return fmt.Sprintf("%-44s not caught after %d seeds, %v, but by %s", r.name, r.seeds, r.took.Round(time.Second), r.test)
	case *build:
		return fmt.Sprintf("%-44s compiles", r.name)
	}
	return fmt.Sprintf("%-44s not caught after %d seeds, %v", r.name, r.seeds, r.took.Round(time.Second))
}

// try builds the simulation with the mutant in it, and runs it until it fails.
func (m mutant) try(ctx context.Context) (r result) {
	r.mutant = m
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		r.err = err
		return r
	}
	defer func() { _ = os.RemoveAll(dir) }()
	overlay, err := m.overlay(dir)
	if err != nil {
		r.err = err
		return r
	}
	binary := filepath.Join(dir, "sim.test")
	//nolint:gosec // the command is ours
	if out, err := exec.CommandContext(ctx, "go", "test", "-c", "-overlay", overlay, "-o", binary, "./internal/sim").CombinedOutput(); err != nil {
		r.err = fmt.Errorf("does not compile: %w\n%s", err, out)
		return r
	}
	if *build {
		return r
	}
	m.live(ctx, binary, &r)
	if !r.caught && r.err == nil && m.test != "" {
		pkg, name, _ := strings.Cut(m.test, " ")
		//nolint:gosec // the command is ours
		out, err := exec.CommandContext(ctx, "go", "test", "-overlay", overlay, "-timeout", "1m", "-run", "^"+name+"$", pkg).CombinedOutput()
		r.tested = err != nil && (bytes.Contains(out, []byte("--- FAIL: "+name)) || bytes.Contains(out, []byte("test timed out")))
	}
	return r
}

// overlay writes the changed file, and what tells the compiler of it.
func (m mutant) overlay(dir string) (string, error) {
	text, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	if n := bytes.Count(text, []byte(m.old)); n != 1 {
		return "", fmt.Errorf("%s has its text %d times; bring the list of mutants up to date:\n%s", m.file, n, m.old)
	}
	changed := filepath.Join(dir, filepath.Base(m.file))
	if err := os.WriteFile(changed, bytes.Replace(text, []byte(m.old), []byte(m.new), 1), 0o600); err != nil {
		return "", err
	}
	original, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	spec, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, spec, 0o600)
}

var violation = regexp.MustCompile(`(?m)^\s+\w+_test\.go:\d+: seed \d+, at [^:]+: (.*)$`)

// live runs the simulation. A mutant may also make it hang or panic, which is noticed as well.
func (m mutant) live(ctx context.Context, binary string, r *result) {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, *limit+time.Minute)
	defer cancel()
	//nolint:gosec // the command is ours
	cmd := exec.CommandContext(ctx, binary, "-test.run", "^TestPromisesHoldUnderFaults$", "-test.v", "-test.timeout", "0",
		"-first", "-seeds", "1", "-for", (*limit).String(), "-span", (*span).String())
	cmd.Dir = "internal/sim"
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=400")
	out, err := cmd.CombinedOutput()
	r.took = time.Since(begin)
	r.seeds = bytes.Count(out, []byte("=== RUN   TestPromisesHoldUnderFaults/"))
	if *verbose {
		fmt.Printf("%s\n", out)
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		r.caught, r.how = true, "the simulation stands still: time does not go on"
	case errors.As(err, &exit):
		r.caught, r.how = true, "the simulation ends with a panic"
		if found := violation.FindSubmatch(out); found != nil {
			r.how = string(found[1])
		} else if i := bytes.Index(out, []byte("panic: ")); i >= 0 {
			line, _, _ := bytes.Cut(out[i:], []byte("\n"))
			r.how = string(line)
		}
	case err != nil:
		r.err = err
	}
	r.how = strings.TrimSpace(r.how)
}
