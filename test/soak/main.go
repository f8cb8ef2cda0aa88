package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	if text := os.Getenv(clientEnv); text != "" {
		if err := runClient(text); err != nil {
			fmt.Fprintln(os.Stderr, "soak client:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := perform(ctx, os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// allLoads are what clients of this library do at once.
var allLoads = []string{"locks", "guards", "leaders", "ticks"}

func defaults() config {
	return config{
		lib: "quorate", loads: allLoads, profile: within, seed: 1, duration: 10 * time.Minute,
		nodes: 5, clients: 8, ttl: 1500 * time.Millisecond, maxTTL: 3 * time.Second, gap: 500 * time.Millisecond,
		log: func(string) {},
	}
}

// perform runs what the command line asks for and tells whether it went well.
func perform(ctx context.Context, args []string, out io.Writer) (ok bool, err error) {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	c := defaults()
	c.log = func(text string) { say("%s", text) }
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.DurationVar(&c.duration, "for", c.duration, "how long faults go on")
	flags.Uint64Var(&c.seed, "seed", 0, "replays the schedule of faults and the choices of clients, not how they interleave; 0 takes a new one")
	flags.StringVar((*string)(&c.profile), "profile", string(c.profile), "within or beyond the assumptions")
	flags.StringVar(&c.lib, "lib", c.lib, "quorate, redsync, redislock, rueidislock or naive")
	loads := flags.String("loads", "", "some of locks,guards,leaders,ticks; default all, and locks for other libraries")
	flags.DurationVar(&c.gap, "gap", c.gap, "time between two faults, on average")
	flags.IntVar(&c.clients, "clients", c.clients, "client processes")
	flags.BoolVar(&c.ungated, "ungated", false, "take the gate at the resource out")
	flags.IntVar(&c.cycles, "cycles", 0, "cycles to measure at the end with one node hung")
	peers := flags.Bool("peers", false, "run all libraries, one after the other, and print a table")
	file := flags.String("json", "", "write the report to this file as well")
	list := flags.Bool("schedule", false, "print the schedule of faults and end")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	if c.seed == 0 {
		c.seed = rand.Uint64N(1 << 32)
	}
	if c.profile != within && c.profile != beyond {
		return false, fmt.Errorf("no profile is called %q: take within or beyond", c.profile)
	}
	if c.lib != "quorate" {
		c.loads = []string{"locks"}
	}
	if *loads != "" {
		c.loads = strings.Split(*loads, ",")
	}
	if *list {
		for _, f := range schedule(c.seed, c.setup()) {
			say("%10v  %v", f.At.Round(time.Millisecond), f)
		}
		return true, nil
	}
	if *peers {
		return true, compare(ctx, c, say)
	}
	say("seed %d", c.seed)
	r, err := soak(ctx, c)
	if err != nil {
		return false, err
	}
	say("%v", r)
	if *file != "" {
		f, err := os.Create(*file)
		if err != nil {
			return false, err
		}
		defer func() { _ = f.Close() }()
		if err := r.json(f); err != nil {
			return false, err
		}
	}
	return !r.failed(), nil
}
