package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"time"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
	"github.com/quorate/quorate/scheduler"
)

// newReplica is one replica of a service, over an embedded fleet.
func newReplica(opts ...scheduler.Option) (replica *scheduler.Scheduler, stop func()) {
	fleet, err := redlocktest.New(3)
	if err != nil {
		log.Fatal(err)
	}
	// Patient, so that the examples end alike on a machine that stands still for a while.
	locker, err := redlock.New(fleet.Clients(), redlock.WithTTL(time.Minute), redlock.WithMaxTTL(time.Minute), redlock.WithNodeTimeout(30*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	silent := slog.New(slog.NewTextHandler(io.Discard, nil))
	replica, err = scheduler.New(locker, append(opts, scheduler.WithLogger(silent), scheduler.WithIdentity("replica-1"))...)
	if err != nil {
		log.Fatal(err)
	}
	return replica, func() {
		_ = locker.Close()
		_ = fleet.Close()
	}
}

// What the ticks of a job have come to is for metrics and alarms.
func ExampleEvent() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	replica, end := newReplica(scheduler.WithObserver(func(e scheduler.Event) {
		switch e.Outcome {
		case scheduler.Unclaimed, scheduler.Missed, scheduler.Interrupted:
			log.Println("alarm:", e.Job, e.Outcome, e.Reason)
		case scheduler.Failed:
			if ctx.Err() == nil { // the first
				fmt.Println(e.Job, e.Outcome, e.Reason == scheduler.TimedOut, errors.Is(e.Err, scheduler.ErrTimeout))
				stop()
			}
		}
	}))
	defer end()
	err := replica.Add("sweep", "* * * * * *", func(ctx context.Context, _ scheduler.Run) error {
		<-ctx.Done() // it takes too long
		return context.Cause(ctx)
	}, scheduler.WithTimeout(10*time.Millisecond))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(replica.Run(ctx))
	// Output:
	// sweep failed true true
	// <nil>
}

// A panic of a job ends the run, and not the process.
func ExamplePanicError() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	replica, end := newReplica(scheduler.WithObserver(func(e scheduler.Event) {
		var panicked *scheduler.PanicError
		if errors.As(e.Err, &panicked) && ctx.Err() == nil { // the first
			fmt.Println(e.Outcome, panicked.Value, len(panicked.Stack) > 0)
			stop()
		}
	}))
	defer end()
	err := replica.Add("sweep", "* * * * * *", func(context.Context, scheduler.Run) error {
		panic("no broom")
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(replica.Run(ctx))
	// Output:
	// panicked no broom true
	// <nil>
}

// A job that must not be lost: it is taken over when its replica dies, tried again when it fails, and
// made up for when the fleet was down.
func ExampleWithAtLeastOnce() {
	replica, end := newReplica()
	defer end()
	settle := func(context.Context, scheduler.Run) error { return nil }
	err := replica.Add("settle", "0 * * * *", settle,
		scheduler.WithAtLeastOnce(5),
		scheduler.WithMisfire(scheduler.MisfireAll(24)),
		scheduler.WithCatchUp(24*time.Hour),
		scheduler.WithOverlap(scheduler.OverlapQueue))
	fmt.Println(err)
	// Output:
	// <nil>
}

// All hours that were slept through are made up for, the newest twelve of them.
func ExampleMisfireAll() {
	replica, end := newReplica()
	defer end()
	err := replica.Add("import", "@hourly", func(context.Context, scheduler.Run) error { return nil },
		scheduler.WithMisfire(scheduler.MisfireAll(12)), scheduler.WithCatchUp(24*time.Hour))
	fmt.Println(err)
	err = replica.Add("export", "@hourly", func(context.Context, scheduler.Run) error { return nil },
		scheduler.WithMisfire(scheduler.MisfireAll(0)))
	fmt.Println(errors.Is(err, scheduler.ErrInvalidOption))
	// Output:
	// <nil>
	// true
}

// A clock that stands still.
type moment struct{ time.Time }

func (m moment) Now() time.Time       { return m.Time }
func (moment) Elapsed() time.Duration { return 0 }

// On the last Sunday of March 2026 there was no 02:30 in Berlin.
func ExampleWithDST() {
	replica, end := newReplica(scheduler.WithClock(moment{time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)}))
	defer end()
	const spec = "CRON_TZ=Europe/Berlin 30 2 * * *"
	nothing := func(context.Context, scheduler.Run) error { return nil }
	if err := replica.Add("daily", spec, nothing); err != nil {
		log.Fatal(err)
	}
	if err := replica.Add("strict", spec, nothing, scheduler.WithDST(scheduler.GapSkip, scheduler.FoldTwice)); err != nil {
		log.Fatal(err)
	}
	for _, job := range []string{"daily", "strict"} {
		next, err := replica.Next(job, 1)
		fmt.Println(job, next[0].Format("2 Jan 15:04 MST"), err)
	}
	// Output:
	// daily 29 Mar 03:00 CEST <nil>
	// strict 30 Mar 02:30 CEST <nil>
}

// What became of a job's last ticks.
func ExampleRecord() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	replica, end := newReplica()
	defer end()
	err := replica.Add("report", "@yearly", func(context.Context, scheduler.Run) error {
		stop()
		return errors.New("out of paper")
	})
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- replica.Run(ctx) }()
	if err := replica.Trigger(context.Background(), "report"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-ended)
	history, err := replica.History(context.Background(), "report")
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range history {
		fmt.Println(r.Kind == scheduler.Triggered, r.Outcome, "by", r.Replica+":", r.Err)
	}
	// Output:
	// <nil>
	// true failed by replica-1: out of paper
}

// A job is paused on all replicas, by any process.
func ExampleStatus() {
	replica, end := newReplica()
	defer end()
	ctx := context.Background()
	err := replica.Add("report", "0 2 * * *", func(context.Context, scheduler.Run) error { return nil })
	if err != nil {
		log.Fatal(err)
	}
	for _, change := range []func(context.Context, string) error{replica.Pause, replica.Resume} {
		if err := change(ctx, "report"); err != nil {
			log.Fatal(err)
		}
		status, err := replica.Status(ctx, "report")
		fmt.Println(status.Paused, status.PausedBy, err)
	}
	// Output:
	// true replica-1 <nil>
	// false  <nil>
}
