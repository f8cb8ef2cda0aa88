package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

var errSoldOut = errors.New("sold out")

// A counter is where the sellers of a replica stand.
type counter struct {
	cfg   config
	shop  *shop
	guard *fencing.Guard
	out   *reporter
	hold  atomic.Bool // the next sale is to take a while

	mu        sync.Mutex
	available []string
}

func newCounter(cfg config, shop *shop, guard *fencing.Guard, out *reporter) *counter {
	return &counter{cfg: cfg, shop: shop, guard: guard, out: out, available: productNames()}
}

// serve sells one unit after the other until nothing is left, or ctx ends.
func (c *counter) serve(ctx context.Context) {
	for {
		product, ok := c.pick()
		if !ok || !pause(ctx, rand.N(2*c.cfg.Think)) {
			return
		}
		err := c.sell(ctx, product)
		switch {
		case err == nil, errors.Is(err, fencing.ErrWaitLimit):
		case errors.Is(err, errSoldOut):
			c.remove(product)
		case ctx.Err() != nil:
			return
		case errors.Is(err, fencing.ErrStaleToken): // was told where it happened
		case errors.Is(err, redlock.ErrLeaseExpired):
			c.out.report(event{Kind: trouble, Product: product, Text: "the lease expired during the sale"})
		default:
			c.out.report(event{Kind: trouble, Product: product, Text: err.Error()})
		}
	}
}

// sell reads, takes the money, and writes. Whoever sold the product before has done so to the
// end, or is refused: that is the guard's part.
func (c *counter) sell(ctx context.Context, product string) error {
	return c.guard.Do(ctx, product, func(ctx context.Context, token redlock.Token) error {
		unit, err := c.shop.stock(ctx, product)
		switch {
		case err != nil:
			return err
		case unit <= 0:
			return errSoldOut
		}
		if c.hold.CompareAndSwap(true, false) {
			c.out.report(event{Kind: inside, Product: product, Unit: unit, Token: token})
			time.Sleep(c.cfg.TTL / 4) // time to be frozen in
		} else if !pause(ctx, rand.N(5*time.Millisecond)) {
			return context.Cause(ctx)
		}
		// A process can be paused between its last look at the lease and its write. So that this
		// happens here for sure, the write does not look.
		err = c.shop.sell(context.WithoutCancel(ctx), product, token, unit, c.cfg.Replica)
		switch {
		case err == nil:
			c.out.report(event{Kind: sold, Product: product, Unit: unit, Token: token})
		case errors.Is(err, fencing.ErrStaleToken):
			c.out.report(event{Kind: refused, Product: product, Unit: unit, Token: token, Text: err.Error()})
		}
		return err
	})
}

// pause reports whether ctx lasted.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (c *counter) pick() (product string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.available) == 0 {
		return "", false
	}
	return c.available[rand.IntN(len(c.available))], true
}

func (c *counter) remove(product string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.available = slices.DeleteFunc(c.available, func(p string) bool { return p == product })
}
