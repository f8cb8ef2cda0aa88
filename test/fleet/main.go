package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	if text := os.Getenv(clientEnv); text != "" {
		if err := runClient(text); err != nil {
			fmt.Fprintln(os.Stderr, "fleet client:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := perform(ctx, os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// perform runs what the command line asks for, and tells whether what must not be was not.
func perform(ctx context.Context, args []string, out io.Writer) (ok bool, err error) {
	say := func(text string) { _, _ = fmt.Fprintln(out, text) }
	if len(args) == 0 {
		return false, fmt.Errorf("say what: leaders or cron")
	}
	flags := flag.NewFlagSet("fleet "+args[0], flag.ContinueOnError)
	journal := flags.String("journal", "", "write all that the processes reported to this file")
	switch args[0] {
	case "leaders":
		c := leadersDefaults()
		flags.IntVar(&c.rounds, "rounds", c.rounds, "rounds of each kind of fault")
		flags.DurationVar(&c.ttl, "ttl", c.ttl, "TTL of a term")
		if err := flags.Parse(args[1:]); err != nil {
			return false, err
		}
		c.log, c.file = say, *journal
		r, err := leaders(ctx, c)
		if err != nil {
			return false, err
		}
		say(r.String())
		return len(r.violations) == 0, nil
	case "cron":
		c := cronDefaults()
		flags.IntVar(&c.ticks, "ticks", c.ticks, "ticks, one a second")
		flags.DurationVar(&c.skew, "skew", c.skew, "how far the wall clock of each replica is ahead of the one before it")
		flags.IntVar(&c.killEvery, "kill-every", c.killEvery, "ticks from one kill to the next")
		flags.DurationVar(&c.ttl, "ttl", c.ttl, "TTL of the leases and locks")
		who := flags.String("contenders", strings.Join(c.contenders, ","), "some of quorate, gocron and gocron-quorate, at the same time")
		if err := flags.Parse(args[1:]); err != nil {
			return false, err
		}
		c.contenders, c.log = strings.Split(*who, ","), say
		c.file = *journal
		r, err := crons(ctx, c)
		if err != nil {
			return false, err
		}
		say(r.String())
		return len(r.violations()) == 0, nil
	}
	return false, fmt.Errorf("nothing is called %q: say leaders or cron", args[0])
}

// pause waits, and tells whether ctx is still there.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
