// Hazard is the story that fencing tokens are for, told twice with real processes. A holds a lease
// and is paused between its last look at it and its write, for longer than the TTL. B gets the
// lease, and sells. Then A goes on.
//
//	go run ./examples/hazard
//
// Without a gate at the store, A's late write lands over B's: two units are sold, and one is gone.
// With one, it is refused, because the store has seen a higher token.
//
// The processes are paused by SIGSTOP. Where there is none, A stands still by itself, and does not
// extend its lease; the first line says so. Everything else is embedded: three nodes for the leases
// and one as the store. The program exits with 1 if the story did not go as told here.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"
)

func main() {
	if cfg, ok, err := inherited(); ok || err != nil {
		os.Exit(holderMain(cfg, err))
	}
	os.Exit(storyMain(os.Args[1:], os.Stdout, os.Stderr))
}

func holderMain(cfg config, err error) int {
	logging.Disable() // go-redis reports each connection that the pause breaks
	if err == nil {
		err = runHolder(cfg)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", cfg.Who, err)
		return 1
	}
	return 0
}

func storyMain(args []string, out, errOut io.Writer) int {
	logging.Disable()
	fail := func(err error) int {
		_, _ = fmt.Fprintln(errOut, "hazard:", err)
		return 2
	}
	flags := flag.NewFlagSet("hazard", flag.ContinueOnError)
	flags.SetOutput(errOut)
	ttl := flags.Duration("ttl", time.Second, "TTL of the leases; A is paused until it is over")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2 // flag has said why
	case flags.NArg() > 0:
		return fail(fmt.Errorf("unexpected argument %q", flags.Arg(0)))
	case *ttl < 200*time.Millisecond || *ttl > 10*time.Second:
		return fail(fmt.Errorf("-ttl %v is not between 200ms and 10s", *ttl))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	asTold, err := tellAll(ctx, *ttl, out)
	switch {
	case err != nil:
		return fail(err)
	case !asTold:
		return 1
	}
	return 0
}
