package leader_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"sync/atomic"
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
	fleet, locker := fleetOf3()
	defer fleet.Close()
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
		fmt.Println(term.Leader, term.Number == own.Number, err)
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

// fleetOf3 is what a service has from clients of three Redis masters. It is patient, so that the
// examples end alike on a machine that stands still for a while.
func fleetOf3() (*redlocktest.Fleet, *redlock.Locker) {
	fleet, err := redlocktest.New(3)
	if err != nil {
		log.Fatal(err)
	}
	locker, err := redlock.New(fleet.Clients(), redlock.WithTTL(time.Minute), redlock.WithMaxTTL(time.Minute), redlock.WithNodeTimeout(30*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	return fleet, locker
}

// candidates runs a candidate for each identity, until the function that it returns is called.
func candidates(locker *redlock.Locker, identities ...string) (electors map[string]*leader.Elector, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	electors = map[string]*leader.Elector{}
	var running sync.WaitGroup
	for _, identity := range identities {
		elector, err := leader.New(locker, "billing", leader.WithIdentity(identity), leader.WithAddress(identity+":8080"),
			leader.WithTTL(time.Minute), leader.WithLogger(quiet))
		if err != nil {
			log.Fatal(err)
		}
		electors[identity] = elector
		running.Go(func() {
			_ = elector.Run(ctx, func(ctx context.Context, _ leader.Term) error {
				<-ctx.Done()
				return nil
			})
		})
		if len(electors) == 1 {
			for !elector.IsLeader() {
				time.Sleep(time.Millisecond)
			}
		}
	}
	return electors, func() {
		cancel()
		running.Wait()
	}
}

func ExampleElector_Watch() {
	fleet, locker := fleetOf3()
	defer fleet.Close()
	defer locker.Close()
	observer, err := leader.New(locker, "billing") // it need not run
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var stop func()
	for term := range observer.Watch(ctx) {
		switch {
		case term.Number == 0 && stop == nil:
			fmt.Println("nobody leads")
			_, stop = candidates(locker, "pod-0")
		case term.Number == 0:
			fmt.Println("nobody leads any more")
			return
		default:
			fmt.Println(term.Leader, "leads, at", term.Address)
			stop()
		}
	}
	// Output:
	// nobody leads
	// pod-0 leads, at pod-0:8080
	// nobody leads any more
}

func ExampleElector_Transfer() {
	fleet, locker := fleetOf3()
	defer fleet.Close()
	defer locker.Close()
	electors, stop := candidates(locker, "pod-0", "pod-1", "pod-2")
	defer stop()

	err := electors["pod-0"].Transfer(context.Background(), "pod-2")
	switch {
	case errors.Is(err, leader.ErrHeirAbsent):
		fmt.Println("another leads, since pod-2 is not there:", err)
	case err != nil:
		fmt.Println(err)
	default:
		fmt.Println("pod-2 leads:", electors["pod-2"].IsLeader())
	}
	// Output:
	// pod-2 leads: true
}

func ExampleWithHealthCheck() {
	fleet, locker := fleetOf3()
	defer fleet.Close()
	defer locker.Close()
	var broken atomic.Bool // in a service: database.PingContext
	check := func(context.Context) error {
		if broken.Load() {
			return errors.New("no connection to the database")
		}
		return nil
	}
	elector, err := leader.New(locker, "billing", leader.WithHealthCheck(check, time.Second), leader.WithLogger(quiet))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	err = elector.Run(ctx, func(ctx context.Context, _ leader.Term) error {
		broken.Store(true)
		<-ctx.Done()
		fmt.Println(context.Cause(ctx))
		stop()
		return nil
	})
	fmt.Println("stopped:", err)
	// Output:
	// health check failed: no connection to the database
	// stopped: <nil>
}

func ExampleTerm_Save() {
	fleet, locker := fleetOf3()
	defer fleet.Close()
	defer locker.Close()
	elector, err := leader.New(locker, "billing", leader.WithLogger(quiet))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	err = elector.Run(ctx, func(ctx context.Context, term leader.Term) error {
		fmt.Printf("goes on from %q\n", term.State())
		if term.State() != nil {
			stop()
			return nil
		}
		return term.Save(ctx, []byte("invoice 42"))
	})
	fmt.Println("stopped:", err)
	// Output:
	// goes on from ""
	// goes on from "invoice 42"
	// stopped: <nil>
}
