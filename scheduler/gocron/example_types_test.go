package gocronlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
	gocronlock "github.com/quorate/quorate/scheduler/gocron"
)

// gocron asks for a lock each time that a job comes due. Who asks again within the interval asks for
// the same tick.
func ExampleLocker_Lock() {
	fleet, err := redlocktest.New(3)
	if err != nil {
		log.Fatal(err)
	}
	defer fleet.Close()
	leases, err := redlock.New(fleet.Clients())
	if err != nil {
		log.Fatal(err)
	}
	defer leases.Close()
	locker, err := gocronlock.NewLocker(leases, gocronlock.WithInterval(time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	lock, err := locker.Lock(ctx, "report") // as gocron does
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lock.Unlock(ctx))
	_, err = locker.Lock(ctx, "report")
	fmt.Println(errors.Is(err, gocronlock.ErrClaimed))
	// Output:
	// <nil>
	// true
}

// The interval is that of the jobs which use the Locker, and the same in all replicas.
func ExampleWithInterval() {
	fleet, err := redlocktest.New(3)
	if err != nil {
		log.Fatal(err)
	}
	defer fleet.Close()
	leases, err := redlock.New(fleet.Clients())
	if err != nil {
		log.Fatal(err)
	}
	defer leases.Close()
	for _, every := range []time.Duration{5 * time.Minute, time.Millisecond} {
		_, err := gocronlock.NewLocker(leases, gocronlock.WithInterval(every), gocronlock.WithTimeout(time.Hour))
		fmt.Println(errors.Is(err, redlock.ErrInvalidOption))
	}
	// Output:
	// false
	// true
}

// A leadership is whoever knows whether this process leads: a *leader.Elector, or another's.
type leadership bool

func (l leadership) IsLeader() bool { return bool(l) }

func ExampleLeadership() {
	for _, l := range []gocronlock.Leadership{leadership(true), leadership(false)} {
		elector, err := gocronlock.NewElector(l)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(errors.Is(elector.IsLeader(context.Background()), gocronlock.ErrNotLeader))
	}
	// Output:
	// false
	// true
}

// With an elector, only the leader runs ticks: give it to gocron.WithDistributedElector.
func ExampleNewElector() {
	elector, err := gocronlock.NewElector(leadership(true)) // in a service: its *leader.Elector
	fmt.Println(err)
	fmt.Println(elector.IsLeader(context.Background()))
	// Output:
	// <nil>
	// <nil>
}
