package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
	"github.com/quorate/quorate/scheduler"
)

// Three replicas of a service have the same job. Each tick is run by one of them.
func Example() {
	fleet, err := redlocktest.New(3) // in production: three Redis servers
	if err != nil {
		panic(err)
	}
	defer fleet.Close()

	ctx, stop := context.WithCancel(context.Background())
	ticks := make(chan time.Time, 100)
	var replicas sync.WaitGroup
	for range 3 {
		locker, err := redlock.New(fleet.Clients())
		if err != nil {
			panic(err)
		}
		sched, err := scheduler.New(locker)
		if err != nil {
			panic(err)
		}
		err = sched.Add("sweep", "@every 1s", func(_ context.Context, run scheduler.Run) error {
			ticks <- run.Scheduled
			return nil
		})
		if err != nil {
			panic(err)
		}
		replicas.Go(func() {
			defer locker.Close()
			_ = sched.Run(ctx)
		})
	}

	first, second := <-ticks, <-ticks
	fmt.Println(second.Sub(first))
	stop()
	replicas.Wait()
	fmt.Println(len(ticks), "runs too many")
	// Output:
	// 1s
	// 0 runs too many
}

func ExampleScheduler_Add() {
	fleet, err := redlocktest.New(1)
	if err != nil {
		panic(err)
	}
	defer fleet.Close()
	locker, err := redlock.New(fleet.Clients())
	if err != nil {
		panic(err)
	}
	defer locker.Close()
	sched, err := scheduler.New(locker)
	if err != nil {
		panic(err)
	}

	report := func(context.Context, scheduler.Run) error { return nil }
	err = sched.Add("nightly-report", "CRON_TZ=Europe/Berlin 30 4 * * *", report, scheduler.WithTimeout(10*time.Minute))
	fmt.Println(err)
	err = sched.Add("weekly-report", "0 4 * * 7", report)
	fmt.Println(errors.Is(err, scheduler.ErrInvalidSpec), err)
	// Output:
	// <nil>
	// true scheduler: add job "weekly-report": invalid spec "0 4 * * 7": end of range (7) above maximum (6): 7; valid are, for example, "0 2 * * *" (each day at 02:00), "*/10 * * * * *" (every ten seconds), "@hourly" and "@every 90s"
}

func ExampleWithObserver() {
	fleet, err := redlocktest.New(3)
	if err != nil {
		panic(err)
	}
	defer fleet.Close()
	locker, err := redlock.New(fleet.Clients())
	if err != nil {
		panic(err)
	}
	defer locker.Close()

	ctx, stop := context.WithCancel(context.Background())
	sched, err := scheduler.New(locker,
		scheduler.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))),
		scheduler.WithObserver(func(e scheduler.Event) {
			fmt.Println(e.Job, e.Outcome, e.Err)
			stop()
		}))
	if err != nil {
		panic(err)
	}
	err = sched.Add("print", "* * * * * *", func(context.Context, scheduler.Run) error {
		return errors.New("out of paper")
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(sched.Run(ctx))
	// Output:
	// print failed out of paper
	// <nil>
}
