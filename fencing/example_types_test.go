package fencing_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

// A gate of your own: whatever can compare and keep a number in one step.
type register struct{ seen map[string]redlock.Token }

func (r *register) Admit(_ context.Context, resource string, token redlock.Token) error {
	if seen := r.seen[resource]; token < seen {
		return &fencing.StaleError{Resource: resource, Token: token, Seen: seen}
	}
	r.seen[resource] = token
	return nil
}

// The example is used by one goroutine; a real one has a lock, and does not forget.
func ExampleGate() {
	var gate fencing.Gate = &register{seen: map[string]redlock.Token{}}
	ctx := context.Background()
	fmt.Println(gate.Admit(ctx, "sku:42", 34))
	fmt.Println(gate.Admit(ctx, "sku:42", 33))
	// Output:
	// <nil>
	// fencing: "sku:42": stale token 33: the gate has admitted 34; another holds the resource now, stop the work
}

// A function is a gate as well: here one that asks another service.
func ExampleGateFunc() {
	locker, _, stop := embedded()
	defer stop()
	gate := fencing.GateFunc(func(_ context.Context, resource string, token redlock.Token) error {
		fmt.Println("asked about", resource, token > 0)
		return nil
	})
	guard, err := fencing.NewGuard(locker, gate)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(guard.Do(context.Background(), "sku:42", func(context.Context, redlock.Token) error { return nil }))
	// Output:
	// asked about sku:42 true
	// <nil>
}

// What the gate has refused, and what it had seen.
func ExampleStaleError() {
	_, store, stop := embedded()
	defer stop()
	ctx := context.Background()
	gate, err := fencing.NewRedisGate(store)
	if err != nil {
		log.Fatal(err)
	}
	if err := gate.Admit(ctx, "sku:42", 34); err != nil {
		log.Fatal(err)
	}
	_, err = gate.IncrBy(ctx, "sku:42", 33, "stock:{sku:42}", -1, 0)
	if stale := (*fencing.StaleError)(nil); errors.As(err, &stale) {
		fmt.Println(stale.Resource, stale.Token, "is older than", stale.Seen)
	}
	// Output:
	// sku:42 33 is older than 34
}

// How much is left, for the message to the buyer.
func ExampleBelowFloorError() {
	_, store, stop := embedded()
	defer stop()
	ctx := context.Background()
	store.Set(ctx, "stock:{sku:42}", 2, 0)
	gate, err := fencing.NewRedisGate(store)
	if err != nil {
		log.Fatal(err)
	}
	_, err = gate.IncrBy(ctx, "sku:42", 33, "stock:{sku:42}", -3, 0)
	if short := (*fencing.BelowFloorError)(nil); errors.As(err, &short) {
		fmt.Println("there are only", short.Value)
	}
	// Output:
	// there are only 2
}

// When too many wait, the next one is told so at once.
func ExampleWithQueueLimit() {
	locker, store, stop := embedded()
	defer stop()
	gate, err := fencing.NewRedisGate(store)
	if err != nil {
		log.Fatal(err)
	}
	guard, err := fencing.NewGuard(locker, gate,
		fencing.WithQueueLimit(100), fencing.WithWaitLimit(2*time.Second), fencing.WithHoldLimit(10*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	err = guard.Do(context.Background(), "sku:42", func(context.Context, redlock.Token) error { return nil })
	if errors.Is(err, fencing.ErrQueueFull) || errors.Is(err, fencing.ErrWaitLimit) {
		fmt.Println("come again")
	}
	fmt.Println(err)
	// Output:
	// <nil>
}

// Who waits and where, when a line is full.
func ExampleQueueError() {
	err := error(&fencing.QueueError{Resource: "sku:42", Waiting: 100, Limit: 100}) // of guard.Do
	if full := (*fencing.QueueError)(nil); errors.As(err, &full) {
		fmt.Println(full.Waiting, "wait for", full.Resource, errors.Is(err, fencing.ErrQueueFull))
	}
	// Output:
	// 100 wait for sku:42 true
}

// A script runs behind the gate's check, and sees its own keys and arguments.
func ExampleNewScript() {
	_, store, stop := embedded()
	defer stop()
	ctx := context.Background()
	gate, err := fencing.NewRedisGate(store)
	if err != nil {
		log.Fatal(err)
	}
	longer, err := fencing.NewScript(`return redis.call('APPEND', KEYS[1], ARGV[1])`)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(gate.Run(ctx, "log", 33, longer, []string{"text:{log}"}, "one line\n").Int())
	fmt.Println(gate.Run(ctx, "log", 32, longer, []string{"text:{log}"}, "too late\n").Err() != nil)
	// Output:
	// 9 <nil>
	// true
}

// An update that carries its own check, in one statement.
func ExampleSQLTable_Update() {
	db := sql.OpenDB(&answers{affected: 1}) // in place of a driver
	defer db.Close()
	stock, err := fencing.NewSQLTable(fencing.PostgreSQL, "stock")
	if err != nil {
		log.Fatal(err)
	}
	sell := func(ctx context.Context, db fencing.DB, token redlock.Token) error { // a *sql.DB, *sql.Conn or *sql.Tx
		return stock.Update(ctx, db, token, fencing.Columns{"sku": 42}, fencing.Columns{"qty": fencing.Add(-1), "sold": true})
	}
	fmt.Println(sell(context.Background(), db, 33))
	// Output:
	// <nil>
}

// Values by their columns.
func ExampleColumns() {
	stock, err := fencing.NewSQLTable(fencing.PostgreSQL, "stock")
	if err != nil {
		log.Fatal(err)
	}
	query, args, err := stock.Statement(33, fencing.Columns{"shop": "x", "sku": 42}, fencing.Columns{"price": "9.90"})
	fmt.Println(query)
	fmt.Println(args, err)
	// Output:
	// UPDATE "stock" SET "price" = $1, "fence" = $2 WHERE "shop" = $3 AND "sku" = $4 AND "fence" <= $5
	// [9.90 33 x 42 33] <nil>
}

// A number that is added to what the column holds.
func ExampleAdd() {
	stock, err := fencing.NewSQLTable(fencing.SQLite, "stock")
	if err != nil {
		log.Fatal(err)
	}
	query, args, err := stock.Statement(33, fencing.Columns{"sku": 42}, fencing.Columns{"qty": fencing.Add(-2)})
	fmt.Println(query)
	fmt.Println(args, err)
	// Output:
	// UPDATE `stock` SET `qty` = `qty` + ?, `fence` = ? WHERE `sku` = ? AND `fence` <= ?
	// [-2 33 42 33] <nil>
}

// The same update by itself, and in a transaction with others.
func ExampleDB() {
	ctx := context.Background()
	db := sql.OpenDB(&answers{affected: 1}) // in place of a driver
	defer db.Close()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	stock, err := fencing.NewSQLTable(fencing.PostgreSQL, "stock")
	if err != nil {
		log.Fatal(err)
	}
	for _, where := range []fencing.DB{db, tx} {
		fmt.Println(stock.Update(ctx, where, 33, fencing.Columns{"sku": 42}, fencing.Columns{"qty": 9}))
	}
	fmt.Println(tx.Commit())
	// Output:
	// <nil>
	// <nil>
	// <nil>
}

// The column that holds the fence, by another name.
func ExampleWithColumn() {
	stock, err := fencing.NewSQLTable(fencing.PostgreSQL, "shop.stock", fencing.WithColumn("written_by"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stock.DDL())
	// Output:
	// ALTER TABLE "shop"."stock" ADD COLUMN "written_by" bigint DEFAULT 0 NOT NULL
}

// Fences that end, a day after a resource was written last.
func ExampleWithFenceTTL() {
	_, store, stop := embedded()
	defer stop()
	ctx := context.Background()
	gate, err := fencing.NewRedisGate(store, fencing.WithFenceTTL(24*time.Hour), fencing.WithKeyPrefix("shop:"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(gate.Admit(ctx, "sku:42", 33))
	for _, key := range store.Keys(ctx, "shop:*").Val() {
		fmt.Println(store.TTL(ctx, key).Val() > 23*time.Hour)
	}
	// Output:
	// <nil>
	// true
}

// Tokens of several resources, as headers of a request.
func ExampleTokens() {
	header := http.Header{}
	fencing.Tokens{"sku:42": 33, "sku:43": 71}.SetHeader(header)
	tokens, err := fencing.ParseHeader(header)
	fmt.Println(tokens["sku:42"], tokens["sku:43"], tokens["sku:44"], err)
	// Output:
	// 33 71 0 <nil>
}

// A client's requests carry the tokens of the section that they are made in.
func ExampleTransport() {
	locker, store, stop := embedded()
	defer stop()
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		tokens, err := fencing.ParseHeader(r.Header)
		fmt.Println(tokens["sku:42"] > 0, errors.Is(err, fencing.ErrNoToken))
	}))
	defer service.Close()
	client := &http.Client{Transport: &fencing.Transport{}}
	put := func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, service.URL, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	gate, err := fencing.NewRedisGate(store)
	if err != nil {
		log.Fatal(err)
	}
	guard, err := fencing.NewGuard(locker, gate)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(put(context.Background()))
	fmt.Println(guard.Do(context.Background(), "sku:42", func(ctx context.Context, _ redlock.Token) error { return put(ctx) }))
	// Output:
	// false true
	// <nil>
	// true false
	// <nil>
}

// A request that changes two resources needs both tokens.
func ExampleWithResources() {
	_, store, stop := embedded()
	defer stop()
	gate, err := fencing.NewRedisGate(store)
	if err != nil {
		log.Fatal(err)
	}
	handler, err := fencing.NewHandler(gate, http.NotFoundHandler(), fencing.WithResources(func(r *http.Request) []string {
		return []string{"account:" + r.URL.Query().Get("from"), "account:" + r.URL.Query().Get("to")}
	}))
	if err != nil {
		log.Fatal(err)
	}
	req := httptest.NewRequest(http.MethodPost, "/transfer?from=anna&to=ben", nil)
	fencing.Tokens{"account:anna": 33}.SetHeader(req.Header)
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, req)
	fmt.Println(answer.Code == http.StatusPreconditionRequired)
	// Output:
	// true
}

// Options that all take: here where metrics go.
func ExampleWithMeterProvider() {
	locker, store, stop := embedded()
	defer stop()
	meters := fencing.WithMeterProvider(nil) // nil: the global one
	gate, err := fencing.NewRedisGate(store, meters)
	if err != nil {
		log.Fatal(err)
	}
	_, err = fencing.NewGuard(locker, gate, meters)
	fmt.Println(err)
	// Output:
	// <nil>
}

// Buyers who come at the same time are served in one section, with one write.
func ExampleBatcher() {
	locker, store, stop := embedded()
	defer stop()
	ctx := context.Background()
	gate, err := fencing.NewRedisGate(store)
	if err != nil {
		log.Fatal(err)
	}
	guard, err := fencing.NewGuard(locker, gate, fencing.WithoutAdmission()) // the write admits
	if err != nil {
		log.Fatal(err)
	}
	batcher, err := fencing.NewBatcher(guard, func(ctx context.Context, sku string, token redlock.Token, orders []int64) error {
		units := int64(0)
		for _, n := range orders {
			units += n
		}
		_, err := gate.IncrBy(ctx, sku, token, "{"+sku+"}:sold", units, 0)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	var buyers sync.WaitGroup
	for i := range 50 {
		buyers.Go(func() {
			if err := batcher.Do(ctx, "sku:42", int64(i%3)); err != nil {
				log.Print(err)
			}
		})
	}
	buyers.Wait()
	fmt.Println(store.Get(ctx, "{sku:42}:sold").Val())
	// Output:
	// 49
}

// Small batches, where other processes are not to wait for long behind this one.
func ExampleBatchOption() {
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
	small := []fencing.BatchOption{fencing.WithMaxBatch(10)}
	batcher, err := fencing.NewBatcher(guard, func(_ context.Context, _ string, _ redlock.Token, items []string) error {
		fmt.Println(items)
		return nil
	}, small...)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(batcher.Do(context.Background(), "sku:42", "one unit for anna"))
	// Output:
	// [one unit for anna]
	// <nil>
}

// An order says how many units are wanted, and is told whether it has them.
type order struct {
	units    int64
	accepted bool
}

// The items are pointers, so that each can be told what became of it.
func ExampleBatchFunc() {
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
	store.Set(ctx, "{sku:42}:stock", 3, 0)
	var sell fencing.BatchFunc[*order] = func(ctx context.Context, sku string, token redlock.Token, orders []*order) error {
		left, err := store.Get(ctx, "{"+sku+"}:stock").Int64()
		if err != nil {
			return err
		}
		for _, o := range orders {
			if o.accepted = o.units <= left; o.accepted {
				left -= o.units
			}
		}
		return gate.Set(ctx, sku, token, "{"+sku+"}:stock", left, 0)
	}
	batcher, err := fencing.NewBatcher(guard, sell)
	if err != nil {
		log.Fatal(err)
	}
	for _, o := range []*order{{units: 2}, {units: 2}, {units: 1}} {
		err := batcher.Do(ctx, "sku:42", o)
		fmt.Println(o.accepted, err)
	}
	// Output:
	// true <nil>
	// false <nil>
	// true <nil>
}
