package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

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

	runs := map[time.Time]int{} // of each tick
	for len(runs) < 2 {
		runs[<-ticks]++
	}
	stop()
	replicas.Wait()
	close(ticks)
	for tick := range ticks {
		runs[tick]++
	}
	for _, n := range runs {
		if n != 1 {
			fmt.Println(n, "runs of a tick")
		}
	}
	fmt.Println("each tick was run once")
	// Output:
	// each tick was run once
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
	// true scheduler: add job "weekly-report": invalid spec "0 4 * * 7": day of week: end of range (7) above maximum (6): 7 (Sunday is 0); valid are, for example, "0 2 * * *" (each day at 02:00), "*/10 * * * * *" (every ten seconds), "@hourly", "@every 90s" and "@at 2026-12-24T18:00:00Z"
}

func ExampleWithObserver() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	sched, end := newReplica(scheduler.WithObserver(func(e scheduler.Event) {
		if e.Outcome == scheduler.Failed && ctx.Err() == nil { // the first
			fmt.Println(e.Job, e.Outcome, e.Err)
			stop()
		}
	}))
	defer end()
	err := sched.Add("print", "* * * * * *", func(context.Context, scheduler.Run) error {
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

// A job of several parts: when the replica that runs it dies, another resumes behind the last part
// that was completed.
func ExampleRun_Step() {
	var sched *scheduler.Scheduler // see the example of Scheduler
	settle := func(_ context.Context, run scheduler.Run) error {
		receipt, err := run.StepResult("charge", func(ctx context.Context) ([]byte, error) {
			return charge(ctx, run.Token)
		})
		if err != nil {
			return err
		}
		return run.Step("mail", func(ctx context.Context) error { return mail(ctx, receipt) })
	}
	register := func() error {
		return sched.Add("settle", "0 3 * * *", settle, scheduler.WithAtLeastOnce(5))
	}
	_ = register
	// In a test, a Run takes its steps without a Scheduler.
	fmt.Println(settle(context.Background(), scheduler.Run{Token: 7}))
	// Output:
	// charged with token 7
	// mailed receipt-7
	// <nil>
}

func charge(_ context.Context, token redlock.Token) ([]byte, error) {
	fmt.Println("charged with token", token)
	return fmt.Appendf(nil, "receipt-%d", token), nil
}

func mail(_ context.Context, receipt []byte) error {
	fmt.Printf("mailed %s\n", receipt)
	return nil
}

// Any process that has a Locker for the fleet may ask for a run, a pause, or what became of the
// last ticks.
func ExampleScheduler_Trigger() {
	replica, end := newReplica()
	defer end()
	ran := make(chan struct{})
	err := replica.Add("report", "@yearly", func(_ context.Context, run scheduler.Run) error {
		fmt.Println(run.Kind, "run of", run.Job)
		close(ran)
		return nil
	})
	fmt.Println(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- replica.Run(ctx) }()

	fmt.Println(replica.Trigger(ctx, "report")) // or from a process of its own
	<-ran
	cancel()
	fmt.Println(<-ended)
	history, err := replica.History(context.Background(), "report")
	fmt.Println(len(history), history[0].Outcome, "by", history[0].Replica, err)
	// Output:
	// <nil>
	// <nil>
	// triggered run of report
	// <nil>
	// 1 ran by replica-1 <nil>
}

// For those who have a robfig/cron already. With a crontab of minutes it is the same.
func ExampleSingleton() {
	replica, end := newReplica()
	defer end()
	ran := make(chan struct{}, 10)
	c := cron.New(cron.WithSeconds(), cron.WithLocation(time.UTC), cron.WithChain(scheduler.Singleton(replica, "report")))
	_, err := c.AddFunc("* * * * * *", func() { ran <- struct{}{} })
	fmt.Println(err)
	c.Start()
	<-ran
	<-c.Stop().Done()
	history, err := replica.History(context.Background(), "report")
	fmt.Println(slices.ContainsFunc(history, func(r scheduler.Record) bool { return r.Outcome == scheduler.Ran }), err)
	// Output:
	// <nil>
	// true <nil>
}
