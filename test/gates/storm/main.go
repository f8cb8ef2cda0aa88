package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/quorate/quorate/test/rig"
)

func main() {
	if text := os.Getenv(clerkEnv); text != "" {
		if err := work(text); err != nil {
			fmt.Fprintln(os.Stderr, "storm clerk:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := perform(ctx, os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "storm:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// perform runs what the command line asks for, and tells whether all gates held and nothing else did.
func perform(ctx context.Context, args []string, out io.Writer) (ok bool, err error) {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	flags := flag.NewFlagSet("storm", flag.ContinueOnError)
	duration := flags.Duration("for", time.Minute, "how long each run goes on, two for each store")
	seed := flags.Uint64("seed", 0, "replays the choice of faults, not how processes interleave; 0 takes a new one")
	stores := flags.String("stores", strings.Join(kinds, ","), "which stores")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	if *seed == 0 {
		*seed = rand.Uint64N(1 << 32)
	}
	say("seed %d", *seed)
	chosen := strings.Split(*stores, ",")
	for _, kind := range chosen {
		if !slices.Contains(kinds, kind) {
			return false, fmt.Errorf("no store is called %q: take some of %s", kind, strings.Join(kinds, ","))
		}
	}
	b, err := rig.NewBench("quorate-storm-", func(text string) { say("%s", text) })
	if err != nil {
		return false, err
	}
	defer b.Close(false)
	defer func() {
		if failed := rig.Recover(recover()); failed != nil {
			ok, err = false, failed
		}
	}()
	s := newStage(b)
	ok = true
	var results []result
	for _, kind := range chosen {
		for _, gated := range []bool{true, false} {
			c := s.config(kind, gated)
			c.duration, c.seed = *duration, *seed
			r, err := run(ctx, c)
			if err != nil {
				return false, fmt.Errorf("%s, gated %v: %w", kind, gated, err)
			}
			say("%v", r)
			results = append(results, r)
			ok = ok && r.verdict() == nil
		}
	}
	say("\n%s", table(results))
	return ok, b.Err()
}
