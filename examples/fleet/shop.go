package main

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

// A shop is the store as the replicas and the parent use it: the stock of each product, and
// records to which every sale and every run of the job is appended. The records are what is
// judged at the end, not what the replicas say they did.
type shop struct {
	client *redis.Client
	prefix string
	gate   fencing.Gate
	// write sells a unit, through the gate where there is one.
	write func(ctx context.Context, product string, token redlock.Token, left int, entry string) error
}

//go:embed sell.lua
var sellSource string

func openShop(cfg config) (*shop, error) {
	client, err := connect(cfg.Store)
	if err != nil {
		return nil, err
	}
	s := &shop{client: client, prefix: cfg.prefix()}
	if !cfg.Gate {
		s.gate = fencing.GateFunc(func(context.Context, string, redlock.Token) error { return nil })
		script := redis.NewScript(sellSource)
		s.write = func(ctx context.Context, product string, _ redlock.Token, left int, entry string) error {
			return script.Run(ctx, client, []string{s.stockKey(product), s.salesKey(product)}, left, entry).Err()
		}
		return s, nil
	}
	gate, err := fencing.NewRedisGate(client, fencing.WithKeyPrefix(s.prefix+"gate:"), fencing.WithFenceTTL(time.Hour))
	if err != nil {
		return nil, err
	}
	script, err := fencing.NewScript(sellSource)
	if err != nil {
		return nil, err
	}
	s.gate = gate
	s.write = func(ctx context.Context, product string, token redlock.Token, left int, entry string) error {
		return gate.Run(ctx, product, token, script, []string{s.stockKey(product), s.salesKey(product)}, left, entry).Err()
	}
	return s, nil
}

func (s *shop) close() { _ = s.client.Close() }

// Fence, stock and record of a product share a hash slot.
func (s *shop) stockKey(product string) string { return s.prefix + "stock:{" + product + "}" }
func (s *shop) salesKey(product string) string { return s.prefix + "sales:{" + product + "}" }
func (s *shop) ticksKey() string               { return s.prefix + "ticks" }

func productNames() []string {
	var names []string
	for i := range products {
		names = append(names, fmt.Sprintf("sku-%02d", i+1))
	}
	return names
}

// open puts the stock on the shelves.
func (s *shop) open(ctx context.Context) error {
	for _, product := range productNames() {
		if err := s.client.Set(ctx, s.stockKey(product), unitsEach, time.Hour).Err(); err != nil {
			return fmt.Errorf("fill the store: %w", err)
		}
	}
	return nil
}

func (s *shop) stock(ctx context.Context, product string) (int, error) {
	return s.client.Get(ctx, s.stockKey(product)).Int()
}

// sell sells the last of the units that the seller has counted.
func (s *shop) sell(ctx context.Context, product string, token redlock.Token, unit, replica int) error {
	return s.write(ctx, product, token, unit-1, sale{token, unit, replica}.String())
}

// tick notes that a run of the job has begun. It goes through no gate: the record shall show a
// run that should not be.
func (s *shop) tick(ctx context.Context, tick time.Time) error {
	return s.client.RPush(ctx, s.ticksKey(), tick.Unix()).Err()
}

// count reads the records.
func (s *shop) count(ctx context.Context) (units, []time.Time, error) {
	var u units
	for _, product := range productNames() {
		left, err := s.stock(ctx, product)
		if err != nil {
			return nil, nil, fmt.Errorf("read the stock of %s: %w", product, err)
		}
		record, err := s.client.LRange(ctx, s.salesKey(product), 0, -1).Result()
		if err != nil {
			return nil, nil, fmt.Errorf("read the sales of %s: %w", product, err)
		}
		shelf := shelf{product: product, started: unitsEach, left: left}
		for _, entry := range record {
			sale, err := parseSale(entry)
			if err != nil {
				return nil, nil, err
			}
			shelf.sales = append(shelf.sales, sale)
		}
		u = append(u, shelf)
	}
	record, err := s.client.LRange(ctx, s.ticksKey(), 0, -1).Result()
	if err != nil {
		return nil, nil, fmt.Errorf("read the ticks: %w", err)
	}
	var runs []time.Time
	for _, entry := range record {
		seconds, err := strconv.ParseInt(entry, 10, 64)
		if err != nil {
			return nil, nil, fmt.Errorf("read the ticks: %w", err)
		}
		runs = append(runs, time.Unix(seconds, 0))
	}
	return u, runs, nil
}

// clear takes the run's data away, fences included. What is on the nodes expires.
func (s *shop) clear(ctx context.Context) error {
	keys := []string{s.ticksKey()}
	for _, product := range productNames() {
		keys = append(keys, s.stockKey(product), s.salesKey(product), s.prefix+"gate:{"+product+"}")
	}
	return s.client.Del(ctx, keys...).Err()
}
