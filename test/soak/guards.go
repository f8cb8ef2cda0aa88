package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

// resources are what guards protect. They live on a server of their own that has no faults.
var resources = []string{"sku-0", "sku-1"}

const stock = 1_000_000 // units of each, at the start

func stockKey(resource string) string  { return "stock:{" + resource + "}" }
func ledgerKey(resource string) string { return "ledger:{" + resource + "}" }

// sell writes the stock that is left, and enters who did so in the ledger. That it writes a value
// that was read before, and does not count down, is what makes it need the guard.
const sell = `
redis.call('SET', KEYS[1], ARGV[1])
redis.call('RPUSH', KEYS[2], ARGV[2] .. ' ' .. ARGV[1])
return 1`

// A guarded runs a function while it holds the resource.
type guarded func(ctx context.Context, resource string, fn func(ctx context.Context, id uint64, token redlock.Token) error) error

// A seller writes to the resource.
type seller func(ctx context.Context, resource string, token redlock.Token, left int64) error

func (c *client) guards(ctx context.Context, all *sync.WaitGroup) error {
	guard, write, err := c.newGuard()
	if err != nil {
		return err
	}
	all.Go(func() {
		r := c.rng(100)
		for ctx.Err() == nil {
			c.sellOne(ctx, r, guard, write)
			pause(ctx, between(r, 5*time.Millisecond, 40*time.Millisecond))
		}
	})
	return nil
}

func (c *client) sellOne(ctx context.Context, r *rand.Rand, guard guarded, write seller) {
	patience, cancel := context.WithTimeout(ctx, 4*c.TTL)
	defer cancel()
	resource := resources[r.IntN(len(resources))]
	err := guard(patience, resource, func(section context.Context, id uint64, token redlock.Token) error {
		left, err := c.resource.Get(section, stockKey(resource)).Int64()
		if err != nil {
			return err
		}
		work := between(r, time.Millisecond, 30*time.Millisecond)
		if r.IntN(20) == 0 {
			work = between(r, c.TTL/2, 2*c.TTL)
		}
		// It does not look at the end of its context: that is what the gate is for.
		pause(ctx, work)
		writing, cancel := context.WithTimeout(context.WithoutCancel(section), 4*c.TTL)
		defer cancel()
		err = write(writing, resource, token, left-1)
		c.record.write(event{Kind: wrote, ID: id, Token: int64(token), Err: class(err)})
		return err
	})
	if err != nil && ctx.Err() == nil {
		pause(ctx, between(r, time.Millisecond, 10*time.Millisecond))
	}
}

func (c *client) newGuard() (guarded, seller, error) {
	script := redis.NewScript(sell)
	ungated := func(ctx context.Context, resource string, token redlock.Token, left int64) error {
		return script.Run(ctx, c.resource, []string{stockKey(resource), ledgerKey(resource)}, left, int64(token)).Err()
	}
	q, ours := c.contender.(quorate)
	if !ours {
		return c.plainGuard, ungated, nil
	}

	redisGate, err := fencing.NewRedisGate(c.resource)
	if err != nil {
		return nil, nil, err
	}
	gatedScript, err := fencing.NewScript(sell)
	if err != nil {
		return nil, nil, err
	}
	gate, write := fencing.Gate(redisGate), func(ctx context.Context, resource string, token redlock.Token, left int64) error {
		return redisGate.Run(ctx, resource, token, gatedScript, []string{stockKey(resource), ledgerKey(resource)}, left, strconv.FormatInt(int64(token), 10)).Err()
	}
	if c.Ungated {
		gate = fencing.GateFunc(func(context.Context, string, redlock.Token) error { return nil })
		write = ungated
	}
	guard, err := fencing.NewGuard(q.locker, gate)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, resource string, fn func(context.Context, uint64, redlock.Token) error) error {
		id := c.record.ask("guard", resource)
		begun := false
		err := guard.Do(ctx, resource, func(section context.Context, token redlock.Token) error {
			begun = true
			c.tellLease(section, held, id)
			// The section ends here for the record: what comes after relies on the gate alone.
			defer c.record.end(id, nil)
			return fn(section, id, token)
		})
		if !begun {
			c.record.refuse(id, err)
		} else {
			c.record.write(event{Kind: released, ID: id, Err: class(err)})
		}
		return err
	}, write, nil
}

// plainGuard is a guard made of nothing but a lock.
func (c *client) plainGuard(ctx context.Context, resource string, fn func(context.Context, uint64, redlock.Token) error) error {
	id := c.record.ask("guard", resource)
	h, err := c.contender.acquire(ctx, resource, how{})
	if err != nil {
		c.record.refuse(id, err)
		return err
	}
	c.tell(held, id, h)
	defer c.release(id, h)
	return fn(ctx, id, redlock.Token(h.token()))
}

// tellLease tells of the lease that ctx belongs to.
func (c *client) tellLease(ctx context.Context, kind kind, id uint64) {
	lease, ok := redlock.LeaseFrom(ctx)
	if !ok {
		panic(fmt.Sprintf("the context of %d has no lease", id))
	}
	c.tell(kind, id, leased{lease})
}
