// Telemetry shows what quorate tells of itself: three replicas elect a leader, run a job and guard updates,
// while their spans are printed, and their metrics are served for Prometheus to read.
//
//	go run .                                              # on five embedded nodes, for half a minute
//	curl http://127.0.0.1:9464/metrics
//	go run . -nodes redis://127.0.0.1:6371,redis://127.0.0.1:6372,redis://127.0.0.1:6373 -for 0
//
// Some things go wrong on purpose, one after the other, so that each metric is seen: see mishaps.go. With
// -mishaps=false nothing does; so it is run by deploy/kubernetes, one replica in each pod.
//
// The code to copy is in sdk.go. On real nodes the keys begin with quorate:example:, and expire.
package main

import (
	"cmp"
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

func main() {
	// A second signal ends the program at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	logging.Disable()
	o, err := parseFlags(args, errOut)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		_, _ = fmt.Fprintln(errOut, "telemetry:", err)
		return 2
	}
	if o.lasts > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.lasts)
		defer cancel()
	}
	if err := serve(ctx, o, out, errOut); err != nil {
		_, _ = fmt.Fprintln(errOut, "telemetry:", err)
		return 1
	}
	return 0
}

type options struct {
	nodes    []string // URLs; none: embedded ones
	replicas int
	lasts    time.Duration
	listen   string
	mishaps  bool
}

func parseFlags(args []string, errOut io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("telemetry", flag.ContinueOnError)
	flags.SetOutput(errOut)
	nodes := flags.String("nodes", "", "URLs of the nodes, with commas between (default: $QUORATE_NODES, or five embedded ones)")
	flags.IntVar(&o.replicas, "replicas", 3, "replicas in this process")
	flags.DurationVar(&o.lasts, "for", 30*time.Second, "how long; 0: until a signal")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:9464", "address of /metrics and /healthz; port 0: a free one")
	flags.BoolVar(&o.mishaps, "mishaps", true, "let things go wrong, so that each metric is seen")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.replicas < 1 || o.replicas > 100:
		return o, fmt.Errorf("-replicas %d is not between 1 and 100", o.replicas)
	case o.lasts < 0:
		return o, fmt.Errorf("-for %v is negative; 0 goes on until a signal", o.lasts)
	}
	if urls := cmp.Or(*nodes, os.Getenv("QUORATE_NODES")); urls != "" {
		o.nodes = strings.Split(urls, ",")
	}
	return o, nil
}
