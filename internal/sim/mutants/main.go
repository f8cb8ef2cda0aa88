// Command mutants switches off the safety rules of quorate, one at a time, and sees the
// simulation fail. From the root of the module:
//
//	go run ./internal/sim/mutants                  # all of them, and docs/mutants.md
//	go run ./internal/sim/mutants -only drift -v   # one, with what the simulation says
//
// A mutant is a change of one file that `go test -overlay` puts in place for one build: the tree
// stays as it is, and no switch is left in what is released. One whose text is no longer found
// exactly once is an error, so that the list cannot outlive the code.
//
// The exit status is 1 when a mutant is caught neither by the simulation within -for, nor by the
// model, as docs/model.md tells, nor by the test that the list names.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"regexp"
	"sync"
	"time"
)

var (
	only    = flag.String("only", "", "run the mutants whose name matches this regular expression, and leave the others' rows of -page as they are")
	limit   = flag.Duration("for", 2*time.Minute, "how long the simulation looks for each")
	span    = flag.Duration("span", 3*time.Minute, "simulated time of each seed")
	verbose = flag.Bool("v", false, "print what the simulation says")
	workers = flag.Int("workers", 2, "how many mutants run at a time")
	page    = flag.String("page", "", "write the table to this file, e.g. docs/mutants.md")
	build   = flag.Bool("build", false, "only see that each mutant applies and compiles")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ok, err := run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func run(ctx context.Context) (ok bool, err error) {
	model, err := modelTable("docs/model.md")
	if err != nil {
		return false, err
	}
	wanted, err := regexp.Compile(*only)
	if err != nil {
		return false, fmt.Errorf("-only: %w", err)
	}
	var chosen []mutant
	for _, m := range mutants {
		if wanted.MatchString(m.name) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		return false, fmt.Errorf("no mutant's name matches %q", *only)
	}
	results := make([]result, len(chosen))
	slots := make(chan struct{}, max(1, *workers))
	var wg sync.WaitGroup
	for i, m := range chosen {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			results[i] = m.try(ctx)
			fmt.Println(results[i].line())
		})
	}
	wg.Wait()
	ok = true
	for i := range results {
		r := &results[i]
		r.model = model[r.flag]
		if r.err != nil {
			return false, fmt.Errorf("%s: %w", r.name, r.err)
		}
		if !*build && !r.caught && !r.tested && r.model == "" {
			fmt.Printf("NOT CAUGHT: %s\n", r.name)
			ok = false
		}
	}
	if *page == "" || *build {
		return ok, nil
	}
	before, err := os.ReadFile(*page)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return ok, os.WriteFile(*page, []byte(table(results, string(before))), 0o644) //nolint:gosec // a page for everybody
}
