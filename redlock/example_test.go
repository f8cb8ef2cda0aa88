package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

// The examples run on an embedded fleet. A service uses a client for each of its nodes:
//
//	nodes := []redis.UniversalClient{
//		redis.NewClient(&redis.Options{Addr: "10.0.1.1:6379"}),
//		redis.NewClient(&redis.Options{Addr: "10.0.2.1:6379"}),
//		redis.NewClient(&redis.Options{Addr: "10.0.3.1:6379"}),
//	}
func Example() {
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

	err = locker.Do(context.Background(), "sku:42", func(ctx context.Context, lease *redlock.Lease) error {
		// ctx ends when the lease does. Pass the token to the store, and let it refuse an older one.
		fmt.Println("working on", lease.Name(), "with a token:", lease.Token() > 0)
		return ctx.Err()
	})
	fmt.Println("error:", err)
	// Output:
	// working on sku:42 with a token: true
	// error: <nil>
}

func ExampleLocker_Acquire() {
	locker, stop := newLocker()
	defer stop()

	// The context bounds the waiting, not the lease.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	lease, err := locker.Acquire(ctx, "report", redlock.WithTTL(10*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("still held:", lease.Remaining() > 0)
	fmt.Println("released:", lease.Release(context.Background()))
	// Output:
	// still held: true
	// released: <nil>
}

func ExampleLocker_TryAcquire() {
	locker, stop := newLocker()
	defer stop()
	ctx := context.Background()

	first, _ := locker.TryAcquire(ctx, "report")
	_, err := locker.TryAcquire(ctx, "report")
	fmt.Println("taken:", errors.Is(err, redlock.ErrTaken))
	_ = first.Release(ctx)
	// Output:
	// taken: true
}

func ExampleLease_Save() {
	locker, stop := newLocker()
	defer stop()
	ctx := context.Background()

	lease, _ := locker.Acquire(ctx, "import")
	_ = lease.Save(ctx, []byte("up to row 1000"))
	_ = lease.Release(ctx)

	next, _ := locker.Acquire(ctx, "import") // here or on any other machine
	fmt.Printf("%s\n", next.State())
	_ = next.Release(ctx)
	// Output:
	// up to row 1000
}

func ExampleLease_Context() {
	locker, stop := newLocker()
	defer stop()
	ctx := context.Background()

	lease, _ := locker.Acquire(ctx, "report")
	_ = lease.Release(ctx)
	<-lease.Context().Done()
	fmt.Println("released:", errors.Is(context.Cause(lease.Context()), redlock.ErrReleased))
	// Output:
	// released: true
}

func ExampleLocker_Inspect() {
	locker, stop := newLocker()
	defer stop()
	ctx := context.Background()

	lease, _ := locker.Acquire(ctx, "report")
	status, _ := locker.Inspect(ctx, "report")
	fmt.Println("held by this lease:", status.Holder == lease.Owner(), "nodes:", len(status.Nodes))
	_ = lease.Release(ctx)
	// Output:
	// held by this lease: true nodes: 3
}

func ExampleLeaseFrom() {
	locker, stop := newLocker()
	defer stop()

	deepInside := func(ctx context.Context) {
		if lease, ok := redlock.LeaseFrom(ctx); ok {
			fmt.Println("under the lease of", lease.Name())
		}
	}
	_ = locker.Do(context.Background(), "report", func(ctx context.Context, _ *redlock.Lease) error {
		deepInside(ctx)
		return nil
	})
	// Output:
	// under the lease of report
}

// patient is for a machine that is so busy that an example stands still for seconds.
var patient = []redlock.Option{
	redlock.WithMaxTTL(10 * time.Minute), redlock.WithTTL(time.Minute), redlock.WithNodeTimeout(20 * time.Second),
}

func newLocker() (locker *redlock.Locker, stop func()) {
	fleet, err := redlocktest.New(3)
	if err != nil {
		panic(err)
	}
	locker, err = redlock.New(fleet.Clients(), patient...)
	if err != nil {
		panic(err)
	}
	return locker, func() {
		_ = locker.Close()
		_ = fleet.Close()
	}
}

func ExampleLocker_Watch() {
	locker, stop := newLocker()
	defer stop()
	ctx := context.Background()

	watch, err := locker.Watch("config")
	if err != nil {
		panic(err)
	}
	defer watch.Close()
	<-watch.C // it has begun to listen

	err = locker.Do(ctx, "config", func(ctx context.Context, lease *redlock.Lease) error {
		return lease.Publish(ctx, []byte("version 2"))
	})
	if err != nil {
		panic(err)
	}
	select {
	case <-watch.C:
	case <-time.After(time.Minute): // the net: a wake-up may be lost
	}
	status, err := locker.Inspect(ctx, "config")
	fmt.Println(string(status.State), err)
	// Output: version 2 <nil>
}
