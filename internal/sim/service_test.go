package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
	"github.com/quorate/quorate/scheduler"
)

// A service is what stands on the leases, on every host of a world: an elector, a job, and
// guarded updates of one store that has no faults of its own.
type service struct {
	w     *world
	store redis.UniversalClient
	gate  *fencing.RedisGate

	mu    sync.Mutex
	terms []context.Context // of terms that may last
	term  redlock.Token     // the highest that was led
	ticks map[time.Time]string
}

const stock = 100_000

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

func TestTheLayersKeepTheirPromisesUnderFaults(t *testing.T) {
	run := func(t *testing.T, seed uint64) {
		var s *service
		begin := time.Now()
		synctest.Test(t, func(t *testing.T) { s = simulateService(t, seed) })
		t.Logf("seed %d: %d nodes, %d hosts, %v simulated in %v: %v", seed, s.w.fleet.Len(), len(s.w.hosts), s.w.took, time.Since(begin), s.w.ops)
	}
	if *oneSeed != 0 {
		run(t, *oneSeed)
		return
	}
	for range (*seeds + 1) / 2 {
		seed := rand.Uint64() >> 32
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { run(t, seed) })
	}
}

func simulateService(t *testing.T, seed uint64) *service {
	rnd := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(t, seed, rnd)
	// What is on record of ticks is state, which a node that comes back empty may have forgotten.
	w.tame = true
	s := &service{w: w, store: redlocktest.Start(t, 1).Clients()[0], ticks: map[time.Time]string{}}
	s.gate = must(fencing.NewRedisGate(s.store))
	require.NoError(t, s.store.Set(t.Context(), "stock:{sku}", stock, 0).Err())

	ctx, stop := context.WithTimeout(t.Context(), *span)
	defer stop()
	var wg sync.WaitGroup
	for _, h := range w.hosts {
		leads, sells := rand.New(rand.NewPCG(seed, rnd.Uint64())), rand.New(rand.NewPCG(seed, rnd.Uint64()))
		wg.Go(func() { s.lead(ctx, h, leads) })
		wg.Go(func() { s.schedule(ctx, h) })
		wg.Go(func() { s.sell(ctx, h, sells) })
	}
	f := &faults{w: w, rnd: rand.New(rand.NewPCG(seed, rnd.Uint64()))}
	wg.Go(func() { f.run(ctx) })
	wg.Go(func() {
		for ctx.Err() == nil {
			s.audit()
			time.Sleep(97 * time.Millisecond)
		}
	})
	<-ctx.Done()
	wg.Wait()
	f.end()
	s.count()
	for _, h := range w.hosts {
		require.NoError(t, h.locker.Close())
	}
	w.took = time.Since(w.begin)
	return s
}

func (s *service) lead(ctx context.Context, h *host, rnd *rand.Rand) {
	e := must(leader.New(h.locker, "service", leader.WithLogger(s.w.log)))
	err := e.Run(ctx, func(ctx context.Context, term leader.Term) error {
		s.w.count("term")
		s.mu.Lock()
		for _, other := range s.terms {
			if other.Err() == nil && ctx.Err() == nil {
				s.w.violated("%s leads term %d while another leads", h.name, term.Number)
			}
		}
		if ctx.Err() == nil && term.Number <= s.term {
			s.w.violated("term %d after %d", term.Number, s.term)
		}
		s.term = max(s.term, term.Number)
		s.terms = append(s.terms, ctx)
		s.mu.Unlock()
		rest(ctx, time.Duration(rnd.ExpFloat64()*float64(20*time.Second)))
		return nil
	})
	require.NoError(s.w.t, err)
}

func (s *service) schedule(ctx context.Context, h *host) {
	sched := must(scheduler.New(h.locker, scheduler.WithClock(h.clock), scheduler.WithIdentity(h.name), scheduler.WithLogger(s.w.log)))
	require.NoError(s.w.t, sched.Add("job", "@every 3s", func(ctx context.Context, run scheduler.Run) error {
		s.w.count("tick")
		s.mu.Lock()
		defer s.mu.Unlock()
		if by, twice := s.ticks[run.Scheduled]; twice {
			s.w.violated("tick %v is run by %s after %s", run.Scheduled, h.name, by)
		}
		s.ticks[run.Scheduled] = h.name
		return nil
	}))
	if err := sched.Run(ctx); err != nil && !errors.Is(err, scheduler.ErrDrainTimeout) {
		s.w.violated("scheduler: %v", err)
	}
}

// sell sells units, now and then as a process does that was paused past the end of its lease.
func (s *service) sell(ctx context.Context, h *host, rnd *rand.Rand) {
	guard := must(fencing.NewGuard(h.locker, s.gate))
	for ctx.Err() == nil {
		patience, cancel := context.WithTimeout(ctx, 15*time.Second)
		_ = guard.Do(patience, "sku", func(_ context.Context, token redlock.Token) error {
			if rnd.IntN(8) == 0 {
				time.Sleep(time.Duration(rnd.IntN(20)) * time.Second) // and looks at no context
			}
			err := s.gate.Run(s.w.t.Context(), "sku", token, sell, []string{"stock:{sku}", "sales:{sku}"}, int64(token)).Err()
			switch {
			case err == nil:
				s.w.count("sold")
			case errors.Is(err, fencing.ErrStaleToken):
				s.w.count("refused")
			default:
				s.w.violated("sale: %v", err)
			}
			return err
		})
		cancel()
		rest(ctx, time.Duration(rnd.ExpFloat64()*float64(300*time.Millisecond)))
	}
}

func (s *service) audit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	leading := 0
	for _, term := range s.terms {
		if term.Err() == nil {
			leading++
		}
	}
	if leading > 1 {
		s.w.violated("%d leaders", leading)
	}
}

// count checks the store's own record: every sale took a unit, and in the order of the tokens.
func (s *service) count() {
	ctx := s.w.t.Context()
	left := must(s.store.Get(ctx, "stock:{sku}").Int())
	sales := must(s.store.LRange(ctx, "sales:{sku}", 0, -1).Result())
	if left != stock-len(sales) || len(sales) != s.w.ops["sold"] {
		s.w.violated("%d units left of %d after %d sales, %d of them told", left, stock, len(sales), s.w.ops["sold"])
	}
	for i := 1; i < len(sales); i++ {
		if len(sales[i]) == len(sales[i-1]) && sales[i] < sales[i-1] {
			s.w.violated("a sale with token %s after one with %s", sales[i], sales[i-1])
		}
	}
}
