package leader_test

import (
	"context"
	"fmt"
	"log"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

// What has happened to this candidate: for a metric, or an alarm.
func ExampleEvent() {
	fleet, err := redlocktest.New(3)
	if err != nil {
		log.Fatal(err)
	}
	defer fleet.Close()
	locker, err := redlock.New(fleet.Clients())
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close()

	elector, err := leader.New(locker, "billing", leader.WithLogger(quiet), leader.WithObserver(func(e leader.Event) {
		switch e.Kind {
		case leader.Began:
			fmt.Println(e.Kind, e.Name)
		case leader.Ended:
			fmt.Println(e.Kind, e.Outcome)
		case leader.Stuck:
			fmt.Println("wake somebody up:", e.Err)
		case leader.StoodBack:
			fmt.Println(e.Kind)
		}
	}))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	err = elector.Run(ctx, func(ctx context.Context, _ leader.Term) error {
		stop()
		<-ctx.Done()
		return nil
	})
	fmt.Println(err)
	// Output:
	// began billing
	// ended stopped
	// <nil>
}

// Who leads each election of the fleet, as a page for people shows it.
func ExampleTermOf() {
	fleet, locker := fleetOf3()
	defer fleet.Close()
	defer locker.Close()
	elector, err := leader.New(locker, "billing", leader.WithIdentity("pod-0"), leader.WithLogger(quiet))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	err = elector.Run(ctx, func(ctx context.Context, own leader.Term) error {
		defer stop()
		status, err := locker.Inspect(ctx, "billing")
		if err != nil {
			return err
		}
		term, ok := leader.TermOf(status)
		fmt.Println(ok, term.Leader, "leads", term.Name, term.Number == own.Number)
		return nil
	})
	fmt.Println(err)
	// Output:
	// true pod-0 leads billing true
	// <nil>
}
