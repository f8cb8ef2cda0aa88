package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	lease = "lease.pml"
	clock = "clock.pml"
)

//go:embed lease.pml clock.pml
var models embed.FS

// A search is what spin found.
type search struct {
	states   int
	depth    int
	violated string   // property, or ""
	trace    []string // the shortest way to the violation
	took     time.Duration
}

var (
	statesLine = regexp.MustCompile(`(?m)^\s*(\d+) states, stored`)
	depthLine  = regexp.MustCompile(`depth reached (\d+)`)
	violation  = regexp.MustCompile(`assertion violated \(*([a-z_]+)`)
	// Any of these means that the search was not exhaustive, or found what is no property.
	unfinished = regexp.MustCompile(`max search depth too small|Search not completed|out of memory|memory bound|pan:[0-9]*: invalid end state`)
)

// A method is how pan goes through the states.
type method struct {
	compile []string
	run     []string
}

// memory is the most that a search may use, in MB.
const memory = "6000"

var (
	// exhaustive is depth first, with the states kept whole: nothing is missed. The clock has no
	// end, so its paths are long.
	exhaustive = method{[]string{"-O1", "-DCOLLAPSE"}, []string{"-m1500000"}}
	// shortest is breadth first, and so finds the shortest way to a violation. Most are found
	// before a compiler has done optimizing.
	shortest = method{[]string{"-O0", "-DCOLLAPSE", "-DBFS"}, nil}
)

// check has spin search one configuration, with more flags set, in a directory that may be
// littered.
func check(ctx context.Context, dir string, c configuration, m method, more ...string) (search, error) {
	begin := time.Now()
	text, err := models.ReadFile(c.model)
	if err != nil {
		return search{}, err
	}
	if err := os.WriteFile(filepath.Join(dir, c.model), text, 0o600); err != nil {
		return search{}, err
	}
	var defines []string
	for _, flag := range append(append([]string(nil), c.flags...), more...) {
		defines = append(defines, "-D"+flag)
	}
	said, err := run(ctx, dir, "spin", append(defines, "-a", c.model)...)
	if err != nil {
		return search{}, err
	}
	if strings.Contains(said, "Error:") { // some errors of syntax come with a good exit status
		return search{}, fmt.Errorf("%s %v: %s", c.model, defines, said)
	}
	// NOREDUCE: there is one process only. No cycles are looked for, so SAFETY will do.
	compile := append([]string{"-w", "-DSAFETY", "-DNOREDUCE", "-DMEMLIM=" + memory, "-o", "pan", "pan.c"}, m.compile...)
	if _, err := run(ctx, dir, "cc", compile...); err != nil {
		return search{}, err
	}
	out, err := run(ctx, dir, "./pan", append([]string{"-n"}, m.run...)...)
	if err != nil {
		return search{}, err
	}
	s := search{took: time.Since(begin)}
	s.states, s.depth = number(statesLine, out), number(depthLine, out)
	if found := violation.FindStringSubmatch(out); found != nil {
		s.violated = found[1]
		replay, err := run(ctx, dir, "spin", append(defines, "-t", c.model)...)
		if err != nil {
			return search{}, err
		}
		for line := range strings.Lines(replay) {
			if _, step, ok := strings.Cut(strings.TrimSpace(line), "step: "); ok {
				s.trace = append(s.trace, step)
			}
		}
		return s, nil
	}
	if why := unfinished.FindString(out); why != "" || !strings.Contains(out, "errors: 0") {
		return search{}, fmt.Errorf("the search has not come to its end: %s\n%s", why, out)
	}
	return s, nil
}

// run runs a command and returns what it wrote.
func run(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) && name == "spin" {
		return "", errors.New("spin is missing: run scripts/install-spin")
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out.String())
	}
	return out.String(), nil
}

func number(line *regexp.Regexp, out string) int {
	found := line.FindStringSubmatch(out)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(found[1]) // digits, by the expression
	return n
}
