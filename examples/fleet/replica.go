package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/scheduler"
)

// runReplica is one replica of the service: it campaigns, runs the job, and sells, until its
// standard input is closed, which also the death of the parent does.
func runReplica(cfg config) error {
	if !cfg.Verbose {
		logging.Disable()
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out := newReporter(cfg.Replica, os.Stdout)

	locker, closeLocker, err := cfg.locker()
	if err != nil {
		return err
	}
	defer closeLocker()
	shop, err := openShop(cfg)
	if err != nil {
		return err
	}
	defer shop.close()

	elector, err := leader.New(locker, "leader",
		leader.WithTTL(cfg.TTL), leader.WithIdentity(cfg.identity()), leader.WithLogger(cfg.logger()))
	if err != nil {
		return err
	}
	jobs, err := newJobs(cfg, locker, shop, out)
	if err != nil {
		return err
	}
	// A seller who does not get a product soon tries another.
	guard, err := fencing.NewGuard(locker, shop.gate, fencing.WithWaitLimit(cfg.TTL/2))
	if err != nil {
		return err
	}
	counter := newCounter(cfg, shop, guard, out)
	go obey(os.Stdin, counter, cancel) // ends with the process

	out.report(event{Kind: ready})
	var all sync.WaitGroup
	var failed [2]error
	all.Go(func() {
		failed[0] = elector.Run(ctx, func(ctx context.Context, term leader.Term) error { return lead(ctx, term, out) })
		cancel()
	})
	all.Go(func() {
		failed[1] = jobs.Run(ctx)
		cancel()
	})
	for range workers {
		all.Go(func() { counter.serve(ctx) })
	}
	all.Wait()
	return errors.Join(failed[:]...)
}

// holdCommand asks a replica to stay inside its next sale for a moment, in which it is frozen.
const holdCommand = "hold"

// obey follows the parent's commands.
func obey(in io.Reader, c *counter, cancel context.CancelFunc) {
	defer cancel()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if lines.Text() == holdCommand {
			c.hold.Store(true)
		}
	}
}

// newJobs has a job that is due every second.
func newJobs(cfg config, locker *redlock.Locker, shop *shop, out *reporter) (*scheduler.Scheduler, error) {
	jobs, err := scheduler.New(locker, scheduler.WithTTL(cfg.TTL),
		scheduler.WithIdentity(cfg.identity()), scheduler.WithLogger(cfg.logger()))
	if err != nil {
		return nil, err
	}
	return jobs, jobs.Add("every-second", "* * * * * *", func(ctx context.Context, run scheduler.Run) error {
		if err := shop.tick(ctx, run.Scheduled); err != nil {
			return err
		}
		out.report(event{Kind: ran, Tick: run.Scheduled, Token: run.Token})
		return nil
	})
}

// lead tells the parent of a term: when it began, how long its lease is valid, and when it ended.
func lead(ctx context.Context, t leader.Term, out *reporter) error {
	lease, ok := redlock.LeaseFrom(ctx)
	if !ok {
		return errors.New("a term without a lease")
	}
	until := lease.Deadline()
	out.report(event{Kind: began, Token: t.Number, Until: until})
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			// The deadline is worked out from two clocks, so it moves by some microseconds.
			if d := lease.Deadline(); ctx.Err() == nil && d.Sub(until) > 5*time.Millisecond {
				until = d
				out.report(event{Kind: trusted, Token: t.Number, Until: until})
			}
		case <-ctx.Done():
			out.report(event{Kind: ended, Token: t.Number, Text: farewell(context.Cause(ctx))})
			return nil
		}
	}
}

// farewell says why a term ended.
func farewell(cause error) string {
	switch {
	case errors.Is(cause, redlock.ErrLeaseExpired):
		return "its lease has expired"
	case errors.Is(cause, context.Canceled):
		return "it is told to end"
	}
	return cause.Error()
}
