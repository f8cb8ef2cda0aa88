package redlocktest_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/redlock/redlocktest"
)

func Example() {
	fleet, err := redlocktest.New(3)
	if err != nil {
		log.Fatal(err)
	}
	defer fleet.Close()
	ctx := context.Background()

	for i, client := range fleet.Clients() {
		won, err := client.SetNX(ctx, "lock:sku", "me", time.Minute).Result()
		fmt.Println("node", i, won, err)
	}
	fleet.RestartEmpty(2)
	for i := range fleet.Len() {
		fmt.Println("node", i, fleet.Keys(i))
	}
	// Output:
	// node 0 true <nil>
	// node 1 true <nil>
	// node 2 true <nil>
	// node 0 [lock:sku]
	// node 1 [lock:sku]
	// node 2 []
}

func ExampleFleet_SkewClock() {
	fleet, err := redlocktest.New(1)
	if err != nil {
		log.Fatal(err)
	}
	defer fleet.Close()

	client := fleet.Clients()[0]
	client.Set(context.Background(), "lock:sku", "me", 8*time.Hour)
	fleet.SkewClock(0, 5*time.Hour)
	fmt.Println(fleet.TTL(0, "lock:sku").Round(time.Hour), fleet.Keys(0))
	fleet.SkewClock(0, 5*time.Hour)
	fmt.Println(fleet.TTL(0, "lock:sku"), fleet.Keys(0))
	// Output:
	// 3h0m0s [lock:sku]
	// 0s []
}

func ExampleHost_Dial() {
	fleet, err := redlocktest.New(2)
	if err != nil {
		log.Fatal(err)
	}
	defer fleet.Close()

	// A client with options of its own, on a machine that cannot reach node 0.
	host := fleet.Host("pod-1")
	host.Partition(0)
	patience := []time.Duration{10 * time.Millisecond, time.Minute}
	for i, addr := range fleet.Addrs() {
		client := redis.NewClient(&redis.Options{
			Addr: addr, Dialer: host.Dial,
			DialTimeout: patience[i], DialerRetries: 1, MaxRetries: -1,
		})
		fmt.Println("node", i, client.Ping(context.Background()))
		_ = client.Close()
	}
	// Output:
	// node 0 ping: dial tcp 10.0.0.1:6379: context deadline exceeded
	// node 1 ping: PONG
}

func ExampleWithTCP() {
	fleet, err := redlocktest.New(3, redlocktest.WithTCP())
	if err != nil {
		log.Fatal(err)
	}
	defer fleet.Close()

	for _, url := range fleet.URLs() { // redis://127.0.0.1:…, for other processes
		options, err := redis.ParseURL(url)
		if err != nil {
			log.Fatal(err)
		}
		client := redis.NewClient(options)
		fmt.Println(client.Ping(context.Background()))
		_ = client.Close()
	}
	// Output:
	// ping: PONG
	// ping: PONG
	// ping: PONG
}
