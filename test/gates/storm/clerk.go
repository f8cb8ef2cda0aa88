package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

// clerk is one process with its workers.
type clerk struct {
	orders
	store  store
	guard  *fencing.Guard
	record *recorder
}

const (
	delivery = 40 // units, when too few are left
	largest  = 3  // units in one sale

	// A sale's thinking takes between the two, which is most of the time that a resource is held.
	shortest = 5 * time.Millisecond
	longest  = 25 * time.Millisecond

	// writing is how long a write may take: longer than a process is stopped that has a row locked.
	writing = 20 * time.Second
)

// work is the life of a process that sells. It ends when it is told to, or when its parent is gone.
func work(text string) error {
	c := &clerk{record: &recorder{to: os.NewFile(3, "events")}}
	if err := json.Unmarshal([]byte(text), &c.orders); err != nil {
		return fmt.Errorf("read the orders in %s: %w", clerkEnv, err)
	}
	redis.SetLogger(silent{})
	slog.SetDefault(slog.New(slog.DiscardHandler))

	var nodes []redis.UniversalClient
	for _, addr := range c.Nodes {
		node := redis.NewClient(&redis.Options{Addr: addr})
		defer func() { _ = node.Close() }()
		nodes = append(nodes, node)
	}
	locker, err := redlock.New(nodes, redlock.WithTTL(c.TTL), redlock.WithMaxTTL(c.TTL),
		redlock.WithIdentity(fmt.Sprintf("clerk-%d.%d", c.Clerk, c.Start)))
	if err != nil {
		return err
	}
	defer func() { _ = locker.Close() }()
	if c.store, err = c.Store.open(); err != nil {
		return err
	}
	defer func() { _ = c.store.close() }()
	if c.guard, err = fencing.NewGuard(locker, c.store.gate()); err != nil {
		return err
	}

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var workers sync.WaitGroup
	for w := range c.Workers {
		workers.Go(func() { c.sellOn(ctx, w) })
	}
	c.record.write(event{Kind: opened})
	// The one command is to stop, and the end of the input means the same for a process whose parent is
	// gone.
	told := bufio.NewScanner(os.Stdin).Scan()
	stop()
	workers.Wait()
	if !told {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// sellOn sells until ctx ends.
func (c *clerk) sellOn(ctx context.Context, worker int) {
	r := rand.New(rand.NewPCG(c.Seed, uint64(c.Clerk)<<32|uint64(c.Start)<<16|uint64(worker)))
	for n := 0; ctx.Err() == nil; n++ {
		s := sale{
			ID:  fmt.Sprintf("%d.%d.%d.%d", c.Clerk, c.Start, worker, n),
			SKU: c.SKUs[r.IntN(len(c.SKUs))], Units: 1 + r.Int64N(largest), Set: r.IntN(2) == 0,
		}
		think := shortest + time.Duration(r.Int64N(int64(longest-shortest)))
		inside := false
		err := c.guard.Do(ctx, s.SKU, func(section context.Context, token redlock.Token) error {
			inside = true
			s.Token = int64(token)
			return c.sellOne(section, s, think)
		})
		if inside || ctx.Err() != nil {
			continue
		}
		c.record.write(event{Kind: class(err, shutOut, notBegun), ID: s.ID, Err: err.Error()})
		pause(ctx, think)
	}
}

// sellOne is a sale under a lease. From the reading on it does not look at the end of its lease: that
// is what the gate is for.
func (c *clerk) sellOne(section context.Context, s sale, think time.Duration) error {
	c.record.write(event{Kind: begun, ID: s.ID, Token: s.Token})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(section), writing)
	defer cancel()
	var err error
	if s.Found, err = c.store.stock(ctx, s.SKU); err != nil {
		c.record.write(event{Kind: overtaken, ID: s.ID, Err: err.Error()})
		return err
	}
	if s.Found < s.Units {
		s.Units = -delivery
	}
	pause(ctx, think)
	err = c.store.sell(ctx, s)
	e := event{Kind: written, ID: s.ID, Token: s.Token}
	if err != nil {
		e.Kind, e.Err = class(err, refused, unclear), err.Error()
		var stale *fencing.StaleError
		if errors.As(err, &stale) {
			e.Seen = int64(stale.Seen)
		}
	}
	c.record.write(e)
	return err
}

func class(err error, stale, other kind) kind {
	if errors.Is(err, fencing.ErrStaleToken) {
		return stale
	}
	return other
}

// pause waits, and tells whether ctx is still there.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
