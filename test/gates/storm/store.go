package main

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/fencing"
)

// A storeConfig says which store a run is on, and how to reach it.
type storeConfig struct {
	Kind  string // PostgreSQL, MariaDB, SQLite or Redis
	DSN   string
	Run   string // names the tables or keys of this run
	Gated bool
}

// kinds are the stores.
var kinds = []string{"PostgreSQL", "MariaDB", "SQLite", "Redis"}

// A sale is a write to a stock.
type sale struct {
	ID    string
	SKU   string
	Token int64
	Units int64 // taken away; negative: delivered
	Found int64 // what was read before
	Set   bool  // writes what is left by what was found, and does not count down
}

// An entry is what the journal has of a sale.
type entry struct {
	ID    string
	SKU   string
	Token int64
	Units int64
	Left  int64 // in stock after it
}

// A shelf is what there is of one resource, in one look.
type shelf struct {
	Left int64
	Sold int64 // the sum of the journal: what was sold less what was delivered
}

// A store keeps stocks, and a journal of all writes to them.
type store interface {
	// prepare lays in so much of each resource, and empties the journal.
	prepare(ctx context.Context, skus []string, initial int64) error
	// gate is what the guard asks.
	gate() fencing.Gate
	// stock is a plain read.
	stock(ctx context.Context, sku string) (int64, error)
	// sell writes the stock and the journal in one step, through the gate if there is one.
	sell(ctx context.Context, s sale) error
	// look is at all resources.
	look(ctx context.Context) (map[string]shelf, error)
	// journal is all entries, in the order of the store.
	journal(ctx context.Context) ([]entry, error)
	close() error
}

func (c storeConfig) open() (store, error) {
	if c.Kind == "Redis" {
		return openRedis(c)
	}
	for name, d := range dialects {
		if name == c.Kind {
			return openSQL(c, d)
		}
	}
	return nil, fmt.Errorf("no store is called %q: take one of %q", c.Kind, kinds)
}
