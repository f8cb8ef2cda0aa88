package gocronlock_test

import (
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
	gocronlock "github.com/quorate/quorate/scheduler/gocron"
)

// Three replicas have the same job at the same time. One of them runs it.
func Example() {
	fleet, err := redlocktest.New(3) // in production: clients of three or five Redis masters
	if err != nil {
		log.Fatal(err)
	}
	defer fleet.Close()

	var refused sync.WaitGroup
	refused.Add(2)
	ran := make(chan struct{})
	for range 3 {
		leases, err := redlock.New(fleet.Clients(), redlock.WithNodeTimeout(4*time.Second))
		if err != nil {
			log.Fatal(err)
		}
		defer leases.Close()
		// Each replica starts at a time of its own: within the interval it is one tick.
		locker, err := gocronlock.NewLocker(leases, gocronlock.WithInterval(time.Hour))
		if err != nil {
			log.Fatal(err)
		}
		sched, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
		if err != nil {
			log.Fatal(err)
		}
		defer func() { _ = sched.Shutdown() }()
		_, err = sched.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()),
			gocron.NewTask(func() {
				lease, _ := locker.Lease("report")
				fmt.Println("the report is made, under a lease with a token:", lease.Token() > 0)
				close(ran)
			}),
			gocron.WithName("report"),
			gocron.WithEventListeners(gocron.AfterLockError(func(uuid.UUID, string, error) { refused.Done() })),
		)
		if err != nil {
			log.Fatal(err)
		}
		sched.Start()
	}
	<-ran
	refused.Wait()
	fmt.Println("the others left it alone")
	// Output:
	// the report is made, under a lease with a token: true
	// the others left it alone
}
