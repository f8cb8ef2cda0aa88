package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

// newRivals are the Lockers of two processes.
func newRivals(opts ...redlock.Option) (fleet *redlocktest.Fleet, a, b *redlock.Locker, stop func()) {
	fleet, err := redlocktest.New(3)
	if err != nil {
		log.Fatal(err)
	}
	opts = slices.Concat(patient, opts)
	a, err = redlock.New(fleet.Clients(), append(opts, redlock.WithIdentity("pod-a"))...)
	if err != nil {
		log.Fatal(err)
	}
	b, err = redlock.New(fleet.Clients(), append(opts, redlock.WithIdentity("pod-b"))...)
	if err != nil {
		log.Fatal(err)
	}
	return fleet, a, b, func() {
		_ = a.Close()
		_ = b.Close()
		_ = fleet.Close()
	}
}

// Waiting has ended without the name: why, and what stood in the way.
func ExampleAcquireError() {
	_, a, b, stop := newRivals()
	defer stop()
	ctx := context.Background()
	lease, err := a.Acquire(ctx, "report")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = lease.Release(ctx) }()

	patience, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_, err = b.Acquire(patience, "report")
	if gaveUp := (*redlock.AcquireError)(nil); errors.As(err, &gaveUp) {
		fmt.Println("gave up:", gaveUp.Err)
		fmt.Println("because the name was taken:", errors.Is(gaveUp.Last, redlock.ErrTaken))
	}
	// Output:
	// gave up: context deadline exceeded
	// because the name was taken: true
}

// Who holds the name, and for how long at most.
func ExampleQuorumError() {
	_, a, b, stop := newRivals()
	defer stop()
	ctx := context.Background()
	lease, err := a.Acquire(ctx, "report")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = lease.Release(ctx) }()

	_, err = b.TryAcquire(ctx, "report")
	if refused := (*redlock.QuorumError)(nil); errors.As(err, &refused) {
		who, _, _ := strings.Cut(refused.Holder, "/") // the rest is random
		fmt.Println(refused.Err, who, refused.Wait > 0)
		fmt.Println("too few votes:", refused.Votes < refused.Quorum)
	}
	// Output:
	// taken by another pod-a true
	// too few votes: true
}

// Each node that did not vote has a reason of its own.
func ExampleNodeError() {
	fleet, a, _, stop := newRivals(redlock.WithLogger(quiet()), redlock.WithNodeTimeout(2*time.Second))
	defer stop()
	fleet.Stop(0)
	fleet.Stop(1)

	_, err := a.TryAcquire(context.Background(), "report")
	var refused *redlock.QuorumError
	if errors.As(err, &refused) {
		fmt.Println(refused.Err)
		for _, n := range refused.Nodes {
			fmt.Println(n.Node, n.Err != nil)
		}
	}
	// Output:
	// no quorum of nodes can be reached
	// 10.0.0.1:6379 true
	// 10.0.0.2:6379 true
}

// The cause of a lease's context says how it ended.
func ExampleLeaseError() {
	locker, stop := newLocker()
	defer stop()
	lease, err := locker.Acquire(context.Background(), "report", redlock.WithTTL(50*time.Millisecond))
	if err != nil {
		log.Fatal(err)
	}
	<-lease.Context().Done() // nobody has extended it
	if ended := (*redlock.LeaseError)(nil); errors.As(context.Cause(lease.Context()), &ended) {
		fmt.Println(ended.Name, ended.Err, ended.Token == lease.Token())
	}
	// Output:
	// report lease expired true
}

// The TTL of all leases, and of one.
func ExampleWithTTL() {
	_, locker, _, stop := newRivals(redlock.WithMaxTTL(10*time.Minute), redlock.WithTTL(4*time.Minute))
	defer stop()
	ctx := context.Background()
	for _, opts := range [][]redlock.LeaseOption{nil, {redlock.WithTTL(9 * time.Minute)}} {
		lease, err := locker.Acquire(ctx, "report", opts...)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(lease.Remaining().Round(time.Minute))
		_ = lease.Release(ctx)
	}
	_, err := locker.Acquire(ctx, "report", redlock.WithTTL(time.Hour))
	fmt.Println(errors.Is(err, redlock.ErrTTLTooLong))
	// Output:
	// 4m0s
	// 9m0s
	// true
}

// Locks of other Redlock clients have the bare name as their key.
func ExampleWithKeyPrefix() {
	fleet, locker, _, stop := newRivals(redlock.WithKeyPrefix(""))
	defer stop()
	ctx := context.Background()
	for _, node := range fleet.Clients() {
		node.SetNX(ctx, "report", "of another library", time.Minute)
	}
	_, err := locker.TryAcquire(ctx, "report")
	fmt.Println(errors.Is(err, redlock.ErrTaken))
	// Output:
	// true
}

// Each lease of this process, by its name, for monitoring.
func ExampleEvent() {
	_, locker, _, stop := newRivals(redlock.WithObserver(func(e redlock.Event) {
		switch e.Kind {
		case redlock.Acquired, redlock.Ended:
			fmt.Println(e.Kind, e.Name, e.Err)
		case redlock.Refused:
			fmt.Println(e.Kind, e.Name, errors.Is(e.Err, redlock.ErrTaken))
		}
	}))
	defer stop()
	ctx := context.Background()
	lease, err := locker.Acquire(ctx, "report")
	if err != nil {
		log.Fatal(err)
	}
	_, _ = locker.TryAcquire(ctx, "report")
	_ = lease.Release(ctx)
	// Output:
	// acquired report <nil>
	// refused report true
	// ended report <nil>
}

// A token is greater than all before it, and tells about when its lease began.
func ExampleToken() {
	locker, stop := newLocker()
	defer stop()
	ctx := context.Background()
	var last redlock.Token
	for range 3 {
		lease, err := locker.Acquire(ctx, "report")
		if err != nil {
			log.Fatal(err)
		}
		age := time.Since(time.UnixMicro(int64(lease.Token())))
		fmt.Println(lease.Token() > last, age < time.Minute)
		last = lease.Token()
		_ = lease.Release(ctx)
	}
	// Output:
	// true true
	// true true
	// true true
}

// The names that are held, and by whom.
func ExampleFilter() {
	_, locker, _, stop := newRivals()
	defer stop()
	ctx := context.Background()
	for _, name := range []string{"sku:2", "report", "sku:1"} {
		lease, err := locker.Acquire(ctx, name)
		if err != nil {
			log.Fatal(err)
		}
		defer func() { _ = lease.Release(ctx) }()
	}
	for status, err := range locker.List(ctx, redlock.Filter{Held: true, Prefix: "sku:"}) {
		if err != nil {
			log.Fatal(err)
		}
		who, _, _ := strings.Cut(status.Holder, "/")
		fmt.Println(status.Name, "is held by", who)
	}
	// Output:
	// sku:1 is held by pod-a
	// sku:2 is held by pod-a
}

// What the nodes know of a name that nobody holds any more.
func ExampleStatus() {
	locker, stop := newLocker()
	defer stop()
	ctx := context.Background()
	err := locker.Do(ctx, "report", func(ctx context.Context, lease *redlock.Lease) error {
		return lease.Save(ctx, []byte("page 7"))
	})
	if err != nil {
		log.Fatal(err)
	}
	status, err := locker.Inspect(ctx, "report")
	fmt.Printf("held: %v, token: %v, state: %s, error: %v\n", status.Holder != "", status.Token > 0, status.State, err)
	// Output:
	// held: false, token: true, state: page 7, error: <nil>
}

// A node that restarted without memory knows nothing of a lease, until the lease is extended.
func ExampleNodeStatus() {
	fleet, locker, _, stop := newRivals(redlock.WithLogger(quiet()))
	defer stop()
	ctx := context.Background()
	lease, err := locker.Acquire(ctx, "report")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = lease.Release(ctx) }()
	if _, err := locker.Inspect(ctx, "report"); err != nil { // all nodes have answered
		log.Fatal(err)
	}
	fleet.RestartEmpty(2)
	for range 2 {
		status, err := locker.Inspect(ctx, "report")
		if err != nil {
			log.Fatal(err)
		}
		var has []bool
		for _, n := range status.Nodes {
			has = append(has, n.Holder == lease.Owner())
		}
		fmt.Println(has)
		if err := lease.Extend(ctx); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// [true true false]
	// [true true true]
}

// What is wrong with the fleet.
func ExampleNodeReport() {
	locker, stop := newLocker()
	defer stop()
	reports, err := locker.Check(context.Background())
	for _, r := range reports {
		fmt.Println(r.Node, r.Role, "up:", r.Up, "warnings:", len(r.Warnings), "counts:", r.Quarantine == 0)
	}
	fmt.Println(err)
	// Output:
	// 10.0.0.1:6379 master up: true warnings: 0 counts: true
	// 10.0.0.2:6379 master up: true warnings: 0 counts: true
	// 10.0.0.3:6379 master up: true warnings: 0 counts: true
	// <nil>
}

// A configuration that many processes follow: told of each change, and asking at intervals as well.
func ExampleWatch() {
	_, writer, reader, stop := newRivals()
	defer stop()
	ctx := context.Background()
	watch, err := reader.Watch("config")
	if err != nil {
		log.Fatal(err)
	}
	defer watch.Close()
	<-watch.C // listening
	go func() {
		_ = writer.Do(ctx, "config", func(ctx context.Context, lease *redlock.Lease) error {
			return lease.Publish(ctx, []byte("version 2"))
		})
	}()
	net := time.NewTicker(time.Second) // a wake-up may be lost
	defer net.Stop()
	for {
		status, err := reader.Inspect(ctx, "config")
		if err == nil && status.State != nil {
			fmt.Printf("%s\n", status.State)
			return
		}
		select {
		case <-watch.C:
		case <-net.C:
		}
	}
	// Output:
	// version 2
}

// A clock of one's own, for a test that needs another time than the system's.
type shifted struct{ begin time.Time }

func (c shifted) Now() time.Time         { return time.Now().AddDate(1, 0, 0) } // it proposes tokens
func (c shifted) Elapsed() time.Duration { return time.Since(c.begin) }         // validity is measured by it

// In a testing/synctest bubble, redlocktest.NewClock is the one to use.
func ExampleClock() {
	var clock redlock.Clock = shifted{time.Now()}
	_, locker, _, stop := newRivals(redlock.WithClock(clock))
	defer stop()
	lease, err := locker.Acquire(context.Background(), "report")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(time.Until(time.UnixMicro(int64(lease.Token()))) > 300*24*time.Hour)
	fmt.Println(lease.Release(context.Background()))
	// Output:
	// true
	// <nil>
}
