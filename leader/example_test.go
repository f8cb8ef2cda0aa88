package leader_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

func Example() {
	fleet, err := redlocktest.New(3) // in a service: clients of three Redis masters
	if err != nil {
		log.Fatal(err)
	}
	defer fleet.Close()
	locker, err := redlock.New(fleet.Clients())
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close()

	elector, err := leader.New(locker, "billing", leader.WithIdentity("pod-0"), leader.WithLogger(quiet))
	if err != nil {
		log.Fatal(err)
	}
	// In a service: ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ctx, stop := context.WithCancel(context.Background())
	err = elector.Run(ctx, func(ctx context.Context, term leader.Term) error {
		fmt.Println(term.Leader, "leads", term.Name)
		fmt.Println("writes carry the term's number:", term.Number > 0)
		stop()
		<-ctx.Done() // do the work until then
		return nil
	})
	fmt.Println("stopped:", err)
	// Output:
	// pod-0 leads billing
	// writes carry the term's number: true
	// stopped: <nil>
}

func ExampleElector_Leader() {
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
	elector, err := leader.New(locker, "billing", leader.WithIdentity("pod-0"), leader.WithLogger(quiet))
	if err != nil {
		log.Fatal(err)
	}

	_, err = elector.Leader(context.Background())
	fmt.Println(errors.Is(err, leader.ErrNoLeader))

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	err = elector.Run(ctx, func(ctx context.Context, own leader.Term) error {
		defer stop()
		term, err := elector.Leader(ctx) // any process may ask
		fmt.Println(term.Leader, term == own, err)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// true
	// pod-0 true <nil>
}

func ExampleElector_Resign() {
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
	elector, err := leader.New(locker, "billing", leader.WithResignPause(time.Millisecond), leader.WithLogger(quiet))
	if err != nil {
		log.Fatal(err)
	}

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	leads := make(chan leader.Term)
	go func() {
		first := <-leads
		fmt.Println("resign:", elector.Resign(ctx))
		second := <-leads // nobody else is a candidate
		fmt.Println("the next term has a higher number:", second.Number > first.Number)
		stop()
	}()
	err = elector.Run(ctx, func(ctx context.Context, term leader.Term) error {
		leads <- term
		<-ctx.Done()
		if errors.Is(context.Cause(ctx), leader.ErrResigned) {
			fmt.Println("told to resign")
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// told to resign
	// resign: <nil>
	// the next term has a higher number: true
}
