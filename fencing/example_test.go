package fencing_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

// embedded gives a Locker over an embedded fleet, and a client of an embedded store.
func embedded() (locker *redlock.Locker, store redis.UniversalClient, stop func()) {
	nodes, err := redlocktest.New(3)
	if err != nil {
		log.Fatal(err)
	}
	data, err := redlocktest.New(1)
	if err != nil {
		log.Fatal(err)
	}
	// A busy machine may let an example stand still for seconds.
	locker, err = redlock.New(nodes.Clients(), redlock.WithMaxTTL(10*time.Minute), redlock.WithTTL(time.Minute), redlock.WithNodeTimeout(20*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	return locker, data.Clients()[0], func() {
		_ = locker.Close()
		_ = data.Close()
		_ = nodes.Close()
	}
}

func Example() {
	locker, store, stop := embedded()
	defer stop()
	ctx := context.Background()
	store.Set(ctx, "stock:{sku:42}", 2, 0)

	gate, err := fencing.NewRedisGate(store)
	if err != nil {
		log.Fatal(err)
	}
	guard, err := fencing.NewGuard(locker, gate)
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		err = guard.Do(ctx, "sku:42", func(ctx context.Context, token redlock.Token) error {
			left, err := gate.IncrBy(ctx, "sku:42", token, "stock:{sku:42}", -1, 0)
			if err == nil {
				fmt.Println("sold, left:", left)
			}
			return err
		})
		if errors.Is(err, fencing.ErrBelowFloor) {
			fmt.Println("sold out")
		}
	}
	// Output:
	// sold, left: 1
	// sold, left: 0
	// sold out
}

// A holder that was paused comes back with the token it had.
func ExampleRedisGate_Set() {
	_, store, stop := embedded()
	defer stop()
	ctx := context.Background()
	gate, err := fencing.NewRedisGate(store)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(gate.Set(ctx, "sku:42", 34, "price:{sku:42}", "9.90", 0))
	fmt.Println(gate.Set(ctx, "sku:42", 33, "price:{sku:42}", "8.90", 0))
	fmt.Println(store.Get(ctx, "price:{sku:42}").Val())
	// Output:
	// <nil>
	// fencing: "sku:42": stale token 33: the gate has admitted 34; another holds the resource now, stop the work
	// 9.90
}

// A script of your own sees its keys and arguments alone, and runs only when the token was
// admitted.
func ExampleRedisGate_Run() {
	locker, store, stop := embedded()
	defer stop()
	ctx := context.Background()
	gate, err := fencing.NewRedisGate(store)
	if err != nil {
		log.Fatal(err)
	}
	guard, err := fencing.NewGuard(locker, gate)
	if err != nil {
		log.Fatal(err)
	}
	sell, err := fencing.NewScript(`
		redis.call('SET', KEYS[1], ARGV[1])
		return redis.call('RPUSH', KEYS[2], ARGV[2])`)
	if err != nil {
		log.Fatal(err)
	}
	store.Set(ctx, "stock:{sku:42}", 7, 0)
	err = guard.Do(ctx, "sku:42", func(ctx context.Context, token redlock.Token) error {
		stock, err := store.Get(ctx, "stock:{sku:42}").Int()
		if err != nil {
			return err
		}
		return gate.Run(ctx, "sku:42", token, sell,
			[]string{"stock:{sku:42}", "sold:{sku:42}"}, stock-1, fmt.Sprint("unit ", stock)).Err()
	})
	fmt.Println(err, store.Get(ctx, "stock:{sku:42}").Val(), store.LRange(ctx, "sold:{sku:42}", 0, -1).Val())
	// Output:
	// <nil> 6 [unit 7]
}

// Code deep inside finds the token in the context.
func ExampleTokenFrom() {
	locker, store, stop := embedded()
	defer stop()
	gate, err := fencing.NewRedisGate(store)
	if err != nil {
		log.Fatal(err)
	}
	guard, err := fencing.NewGuard(locker, gate)
	if err != nil {
		log.Fatal(err)
	}
	rename := func(ctx context.Context, name string) error {
		token, ok := fencing.TokenFrom(ctx)
		if !ok {
			return errors.New("call this under a guard")
		}
		return gate.HSet(ctx, "sku:42", token, "item:{sku:42}", map[string]any{"name": name})
	}
	err = guard.Do(context.Background(), "sku:42", func(ctx context.Context, _ redlock.Token) error {
		return rename(ctx, "teapot")
	})
	fmt.Println(err, store.HGetAll(context.Background(), "item:{sku:42}").Val())
	fmt.Println(rename(context.Background(), "kettle"))
	// Output:
	// <nil> map[name:teapot]
	// call this under a guard
}
