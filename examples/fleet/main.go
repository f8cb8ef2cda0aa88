// Fleet is the main job of this project in one program: three replicas, each a process of its
// own, elect a leader, run a job every second once across the fleet, and sell a thousand units
// of ten products through guards into a gated store. Meanwhile the leader is killed, a replica is
// frozen past its TTL in the middle of a sale, and a node restarts empty. At the end it counts,
// and exits 1 if anything was doubled, oversold or admitted stale.
//
//	go run ./examples/fleet                  # on an embedded fleet of three nodes
//	go run ./examples/fleet -for 60s
//	go run ./examples/fleet -gate=false      # the frozen replica's late write lands: exits 1
//	go run ./examples/fleet -nodes redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3
//
// With -nodes nothing is embedded, and no node is restarted. The store is -store, or the first
// node. All keys have fleet-example: and the run's own name in them; those of the store are
// deleted after the run, those on the nodes expire within ten minutes.
//
// The numbers on the left are seconds since the start. Terms are numbered by their tokens.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"
)

// shortest is the shortest run in which all that is to happen has room.
const shortest = 6 * time.Second

func main() {
	if cfg, ok, err := inherited(); ok || err != nil {
		os.Exit(replicaMain(cfg, err))
	}
	os.Exit(parentMain(os.Args[1:], os.Stdout, os.Stderr))
}

func replicaMain(cfg config, err error) int {
	if err == nil {
		err = runReplica(cfg)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "replica %d: %v\n", cfg.Replica, err)
		return 1
	}
	return 0
}

func parentMain(args []string, out, errOut io.Writer) int {
	cfg, length, err := parseFlags(args, errOut)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		_, _ = fmt.Fprintln(errOut, "fleet:", err)
		return 2
	}
	if !cfg.Verbose {
		logging.Disable() // go-redis reports each connection that the faults break
	}
	// A second signal ends the program at once: the replicas then end by themselves.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	defer stop()
	v, err := play(ctx, cfg, length, out)
	if err != nil {
		_, _ = fmt.Fprintln(errOut, "fleet:", err)
		return 2
	}
	v.print(out)
	return v.exitCode()
}

func parseFlags(args []string, errOut io.Writer) (cfg config, length time.Duration, err error) {
	flags := flag.NewFlagSet("fleet", flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.DurationVar(&length, "for", 20*time.Second, "how long to run; at least "+shortest.String())
	nodes := flags.String("nodes", "", "redis:// URLs of independent nodes, with commas between (default: three embedded ones)")
	flags.StringVar(&cfg.Store, "store", "", "redis:// URL of the store (default: an embedded one, or the first of -nodes)")
	flags.BoolVar(&cfg.Gate, "gate", true, "check the tokens of writes at the store; without it the late write lands")
	flags.BoolVar(&cfg.Verbose, "v", false, "show the logs of the replicas")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return cfg, 0, err
		}
		return cfg, 0, fmt.Errorf("cannot read the flags: %w", err)
	}
	switch {
	case flags.NArg() > 0:
		return cfg, 0, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case length < shortest:
		return cfg, 0, fmt.Errorf("-for %v is too short; give at least %v", length, shortest)
	}
	if *nodes != "" {
		cfg.Nodes = strings.Split(*nodes, ",")
		if cfg.Store == "" {
			cfg.Store = cfg.Nodes[0]
		}
	}
	cfg.Run = newRunID()
	cfg.TTL = min(max(length/10, time.Second), 2*time.Second).Round(time.Millisecond)
	cfg.Think = length * sellingShare / 100 * replicas * workers / (products * unitsEach)
	return cfg, length, nil
}
