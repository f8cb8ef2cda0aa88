package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

// guards is the layer of package fencing: every host sells units of a few stocks, one at a time, several
// in one section, or to several buyers in one batch, in a store that has no faults of its own, behind a gate. Now and then a seller
// wakes up long after its lease.
type guards struct {
	w     *world
	store redis.UniversalClient
	gate  *fencing.RedisGate
}

const stock = 10_000_000

var skus = []string{"sku:1", "sku:2", "sku:3"}

func stockKey(sku string) string { return "stock:{" + sku + "}" }
func salesKey(sku string) string { return "sales:{" + sku + "}" }

// sell takes one unit and enters the token of the sale, in one step behind the gate.
var sell = must(fencing.NewScript(`
	redis.call('RPUSH', KEYS[2], ARGV[1])
	return redis.call('DECR', KEYS[1])`))

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func newGuards(w *world) *guards {
	g := &guards{w: w, store: redlocktest.Start(w.t, 1).Clients()[0]}
	g.gate = must(fencing.NewRedisGate(g.store))
	for _, sku := range skus {
		must(g.store.Set(w.t.Context(), stockKey(sku), stock, 0).Result())
	}
	return g
}

func (g *guards) run(ctx context.Context, h *host, rnd *rand.Rand) {
	guard := must(fencing.NewGuard(h.locker, g.gate))
	batcher := must(fencing.NewBatcher(guard, g.serve, fencing.WithMaxBatch(3)))
	for ctx.Err() == nil {
		patience, cancel := context.WithTimeout(ctx, 15*time.Second)
		one := skus[rnd.IntN(len(skus))]
		sellOne := func(_ context.Context, token redlock.Token) error {
			g.oversleep(rnd)
			return g.sell(one, token)
		}
		switch rnd.IntN(5) {
		case 0:
			_ = guard.TryDo(patience, one, sellOne)
		case 1:
			basket := basketOf(rnd)
			_ = guard.DoAll(patience, basket, func(_ context.Context, tokens fencing.Tokens) error {
				g.w.did("basket")
				for _, sku := range basket {
					g.oversleep(rnd)
					_ = g.sell(sku, tokens[sku])
				}
				return nil
			})
		case 2:
			g.sellTo(patience, batcher, one, rnd)
		default:
			_ = guard.Do(patience, one, sellOne)
		}
		cancel()
		rest(ctx, about(rnd, time.Second))
	}
}

// A buyer is an item of a batch.
type buyer struct {
	oversleeps bool
	served     int
}

// serve sells a unit to each of a batch, as long as the gate admits it.
func (g *guards) serve(_ context.Context, sku string, token redlock.Token, batch []*buyer) error {
	g.w.did("batch")
	for _, b := range batch {
		b.served++
		if b.oversleeps {
			time.Sleep(5 * time.Second)
		}
		if err := g.sell(sku, token); err != nil {
			return err
		}
	}
	return nil
}

// sellTo has up to six buyers come at the same time, some of whom do not wait for long.
func (g *guards) sellTo(ctx context.Context, batcher *fencing.Batcher[*buyer], sku string, rnd *rand.Rand) {
	var all sync.WaitGroup
	for range 1 + rnd.IntN(6) {
		b := &buyer{oversleeps: rnd.IntN(16) == 0}
		patience := about(rnd, 10*time.Second)
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			err := batcher.Do(ctx, sku, b)
			if b.served > 1 || err == nil && b.served == 0 || errors.Is(err, fencing.ErrNotBegun) && b.served > 0 {
				g.w.violated("a buyer of %s was served %d times, and told: %v", sku, b.served, err)
			}
		})
	}
	all.Wait()
}

// oversleep pauses now and then, and looks at no context.
func (g *guards) oversleep(rnd *rand.Rand) {
	if rnd.IntN(16) == 0 {
		time.Sleep(time.Duration(rnd.IntN(20)) * time.Second)
	}
}

// basketOf is two or three of the stocks, in any order.
func basketOf(rnd *rand.Rand) []string {
	basket := slices.Clone(skus)
	rnd.Shuffle(len(basket), func(i, j int) { basket[i], basket[j] = basket[j], basket[i] })
	return basket[:2+rnd.IntN(2)]
}

func (g *guards) sell(sku string, token redlock.Token) error {
	err := g.gate.Run(g.w.t.Context(), sku, token, sell, []string{stockKey(sku), salesKey(sku)}, int64(token)).Err()
	switch {
	case err == nil:
		g.w.did("sold")
	case errors.Is(err, fencing.ErrStaleToken):
		g.w.did("refused")
	default:
		g.w.violated("sale: %v", err)
	}
	return err
}

func (g *guards) audit() {}

// end has every host take all stocks at the same time, in any order, which nobody may wait for for ever,
// and checks the store's own record: every sale took a unit, and in the order of the tokens.
func (g *guards) end() {
	ctx := g.w.t.Context()
	rnd := rand.New(rand.NewPCG(g.w.seed, 5))
	var hosts sync.WaitGroup
	for _, h := range g.w.hosts {
		basket := basketOf(rnd)
		hosts.Go(func() {
			patience, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			err := must(fencing.NewGuard(h.locker, g.gate)).DoAll(patience, basket, func(ctx context.Context, tokens fencing.Tokens) error {
				rest(ctx, 100*time.Millisecond)
				for _, sku := range basket {
					if err := g.sell(sku, tokens[sku]); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				g.w.violated("%s cannot take %v though nothing is in its way: %v", h.name, basket, err)
			}
		})
	}
	hosts.Wait()
	told := 0
	for _, sku := range skus {
		left := must(g.store.Get(ctx, stockKey(sku)).Int())
		sales := must(g.store.LRange(ctx, salesKey(sku), 0, -1).Result())
		told += len(sales)
		if left != stock-len(sales) {
			g.w.violated("%d units of %s left of %d after %d sales", left, sku, stock, len(sales))
		}
		last := int64(0)
		for _, sale := range sales {
			token := must(strconv.ParseInt(sale, 10, 64))
			if token < last {
				g.w.violated("a sale of %s with token %d after one with %d", sku, token, last)
			}
			last = token
		}
	}
	if told != g.w.counts.Ops["sold"] {
		g.w.violated("%d sales on record, %d told", told, g.w.counts.Ops["sold"])
	}
}
