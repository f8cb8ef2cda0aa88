package fencing_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

// Both accounts or none, and never in a circle with a transfer the other way.
func ExampleGuard_DoAll() {
	locker, store, stop := embedded()
	defer stop()
	ctx := context.Background()
	store.MSet(ctx, "balance:{anna}", 10, "balance:{ben}", 0)
	gate, err := fencing.NewRedisGate(store)
	if err != nil {
		log.Fatal(err)
	}
	guard, err := fencing.NewGuard(locker, gate)
	if err != nil {
		log.Fatal(err)
	}
	err = guard.DoAll(ctx, []string{"ben", "anna"}, func(ctx context.Context, tokens fencing.Tokens) error {
		if _, err := gate.IncrBy(ctx, "anna", tokens["anna"], "balance:{anna}", -4, 0); err != nil {
			return err
		}
		_, err := gate.IncrBy(ctx, "ben", tokens["ben"], "balance:{ben}", 4, 0)
		return err
	})
	fmt.Println(err, store.MGet(ctx, "balance:{anna}", "balance:{ben}").Val())
	// Output:
	// <nil> [6 4]
}

// Who finds the resource taken does something else.
func ExampleGuard_TryDo() {
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
	refresh := func(context.Context, redlock.Token) error {
		fmt.Println("refreshing")
		err := guard.TryDo(context.Background(), "cache:prices", func(context.Context, redlock.Token) error { return nil })
		if errors.Is(err, redlock.ErrTaken) {
			fmt.Println("somebody does it already")
		}
		return nil
	}
	fmt.Println(guard.TryDo(context.Background(), "cache:prices", refresh))
	// Output:
	// refreshing
	// somebody does it already
	// <nil>
}

// The table goes into the migrations of the service.
func ExampleSQLGate_DDL() {
	gate, err := fencing.NewSQLGate(fencing.PostgreSQL)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(gate.DDL())
	// Output:
	// CREATE TABLE IF NOT EXISTS "quorate_fence" ("resource" text COLLATE "C" NOT NULL PRIMARY KEY, "token" bigint NOT NULL)
}

// The token is admitted in the transaction that writes. The rest of the code is as it was.
func ExampleSQLGate_Admit() {
	db := sql.OpenDB(&answers{affected: 1}) // in place of a driver
	defer db.Close()
	gate, err := fencing.NewSQLGate(fencing.PostgreSQL)
	if err != nil {
		log.Fatal(err)
	}
	sell := func(ctx context.Context, token redlock.Token) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		if err := gate.Admit(ctx, tx, "sku:42", token); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE stock SET qty = qty - 1 WHERE sku = 42`); err != nil {
			return err
		}
		return tx.Commit()
	}
	fmt.Println(sell(context.Background(), 33))
	fmt.Println(sell(context.Background(), 0))
	// Output:
	// <nil>
	// fencing: admit "sku:42": invalid token 0: it is not positive; use the token of the lease
}

// Where one row is the resource, its update carries the check.
func ExampleSQLTable_Statement() {
	stock, err := fencing.NewSQLTable(fencing.MySQL, "stock")
	if err != nil {
		log.Fatal(err)
	}
	query, args, err := stock.Statement(33, fencing.Columns{"sku": 42}, fencing.Columns{"qty": fencing.Add(-1)})
	fmt.Println(query)
	fmt.Println(args, err)
	// Output:
	// UPDATE `stock` SET `qty` = `qty` + ?, `fence` = ? WHERE `sku` = ? AND `fence` <= ?
	// [-1 33 42 33] <nil>
}

// The service refuses whoever comes late, and the client learns why.
func ExampleNewHandler() {
	locker, store, stop := embedded()
	defer stop()
	ctx := context.Background()
	gate, err := fencing.NewRedisGate(store)
	if err != nil {
		log.Fatal(err)
	}
	handler, err := fencing.NewHandler(gate, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := fencing.TokenFor(r.Context(), "sku:42")
		if err := gate.Set(r.Context(), "sku:42", token, "price:{sku:42}", "9.90", 0); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	if err != nil {
		log.Fatal(err)
	}
	service := httptest.NewServer(handler)
	defer service.Close()

	guard, err := fencing.NewGuard(locker, gate)
	if err != nil {
		log.Fatal(err)
	}
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
		defer func() { _ = resp.Body.Close() }()
		if err := fencing.CheckResponse(resp); err != nil {
			return err
		}
		fmt.Println(resp.Status)
		return nil
	}
	err = guard.Do(ctx, "sku:42", func(ctx context.Context, token redlock.Token) error {
		if err := put(ctx); err != nil {
			return err
		}
		// Meanwhile another holder, of whom this one does not know:
		if err := gate.Admit(ctx, "sku:42", token+1); err != nil {
			return err
		}
		return put(ctx)
	})
	fmt.Println(errors.Is(err, fencing.ErrStaleToken), store.Get(ctx, "price:{sku:42}").Val())
	fmt.Println(put(ctx))
	// Output:
	// 200 OK
	// true 9.90
	// 428 Precondition Required
	// <nil>
}
