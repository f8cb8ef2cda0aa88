package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

// guards is the layer of package fencing: every host sells units of one stock, in a store that
// has no faults of its own, behind a gate. Now and then a seller wakes up long after its lease.
type guards struct {
	w     *world
	store redis.UniversalClient
	gate  *fencing.RedisGate
}

const stock = 10_000_000

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
	must(g.store.Set(w.t.Context(), "stock:{sku}", stock, 0).Result())
	return g
}

func (g *guards) run(ctx context.Context, h *host, rnd *rand.Rand) {
	guard := must(fencing.NewGuard(h.locker, g.gate))
	for ctx.Err() == nil {
		patience, cancel := context.WithTimeout(ctx, 15*time.Second)
		_ = guard.Do(patience, "sku", func(_ context.Context, token redlock.Token) error {
			if rnd.IntN(16) == 0 {
				time.Sleep(time.Duration(rnd.IntN(20)) * time.Second) // and looks at no context
			}
			return g.sell(token)
		})
		cancel()
		rest(ctx, about(rnd, time.Second))
	}
}

func (g *guards) sell(token redlock.Token) error {
	err := g.gate.Run(g.w.t.Context(), "sku", token, sell, []string{"stock:{sku}", "sales:{sku}"}, int64(token)).Err()
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

// end checks the store's own record: every sale took a unit, and in the order of the tokens.
func (g *guards) end() {
	ctx := g.w.t.Context()
	left := must(g.store.Get(ctx, "stock:{sku}").Int())
	sales := must(g.store.LRange(ctx, "sales:{sku}", 0, -1).Result())
	if left != stock-len(sales) || len(sales) != g.w.counts.Ops["sold"] {
		g.w.violated("%d units left of %d after %d sales, %d of them told", left, stock, len(sales), g.w.counts.Ops["sold"])
	}
	last := int64(0)
	for _, sale := range sales {
		token := must(strconv.ParseInt(sale, 10, 64))
		if token < last {
			g.w.violated("a sale with token %d after one with %d", token, last)
		}
		last = token
	}
}
