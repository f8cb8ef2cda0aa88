package sim

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/redlock"
)

var (
	oneSeed = flag.Uint64("seed", 0, "run this seed only")
	seeds   = flag.Int("seeds", 8, "how many fresh seeds to run")
	span    = flag.Duration("span", 3*time.Minute, "simulated time under faults, for each seed")
)

func TestMain(m *testing.M) {
	redis.SetLogger(noLog{}) // it reports every connection that the faults break
	goleak.VerifyTestMain(m)
}

type noLog struct{}

func (noLog) Printf(context.Context, string, ...any) {}

func TestPromisesHoldUnderFaults(t *testing.T) {
	if *oneSeed != 0 {
		simulate(t, *oneSeed)
		return
	}
	for _, seed := range keptSeeds(t) {
		t.Run(fmt.Sprintf("kept=%d", seed), func(t *testing.T) { simulate(t, seed) })
	}
	for range *seeds {
		seed := rand.Uint64() >> 32
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { simulate(t, seed) })
	}
}

// keptSeeds are those that ever failed, one to a line, with a comment behind.
func keptSeeds(t *testing.T) []uint64 {
	text, err := os.ReadFile(filepath.Join("testdata", "seeds.txt"))
	require.NoError(t, err)
	var kept []uint64
	for line := range strings.Lines(string(text)) {
		number, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if number == "" || strings.HasPrefix(number, "#") {
			continue
		}
		seed, err := strconv.ParseUint(number, 10, 64)
		require.NoError(t, err)
		kept = append(kept, seed)
	}
	return kept
}

func simulate(t *testing.T, seed uint64) {
	var w *world
	begin := time.Now()
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		w = newWorld(t, seed, rnd)
		ctx, stop := context.WithTimeout(t.Context(), *span)
		defer stop()
		var wg sync.WaitGroup
		for _, h := range w.hosts {
			for range 1 + rnd.IntN(2) {
				r := rand.New(rand.NewPCG(seed, rnd.Uint64()))
				wg.Go(func() { w.work(ctx, h, r) })
			}
		}
		faults := &faults{w: w, rnd: rand.New(rand.NewPCG(seed, rnd.Uint64()))}
		wg.Go(func() { faults.run(ctx) })
		wg.Go(func() {
			for ctx.Err() == nil {
				w.audit()
				time.Sleep(73 * time.Millisecond)
			}
		})
		wg.Wait()
		faults.end()
		w.aftermath()
		for _, h := range w.hosts {
			require.NoError(t, h.locker.Close())
		}
		w.took = time.Since(w.begin)
	})
	t.Logf("seed %d: %d nodes, %d hosts, %v simulated in %v: %v", seed, w.fleet.Len(), len(w.hosts), w.took, time.Since(begin), w.ops)
}

// work is one client's life: it takes names, holds them for a while, saves, and lets them go or
// forgets them.
func (w *world) work(ctx context.Context, h *host, rnd *rand.Rand) {
	for n := 0; ctx.Err() == nil; n++ {
		name := w.names[rnd.IntN(len(w.names))]
		hold := time.Duration(rnd.ExpFloat64() * float64(2*time.Second))
		auto := rnd.IntN(2) == 0
		var lease *redlock.Lease
		var err error
		if rnd.IntN(3) == 0 {
			lease, err = h.locker.TryAcquire(ctx, name, redlock.WithAutoExtend(auto))
		} else {
			patience, cancel := context.WithTimeout(ctx, time.Duration(rnd.IntN(20_000))*time.Millisecond)
			lease, err = h.locker.Acquire(patience, name, redlock.WithAutoExtend(auto))
			cancel()
		}
		w.count("asked")
		if err != nil {
			w.expected(err)
			rest(ctx, time.Duration(rnd.IntN(500))*time.Millisecond)
			continue
		}
		w.granted(h, lease)
		for range rnd.IntN(3) {
			rest(lease.Context(), hold/3)
			w.save(lease, fmt.Sprintf("%s/%d/%d", h.name, lease.Token(), n))
			n++
		}
		rest(lease.Context(), hold)
		switch rnd.IntN(10) {
		case 0: // forgotten: it must end by itself, and so must not be extended for ever
			if auto {
				_ = lease.Release(ctx)
			}
		default:
			if err := lease.Release(ctx); err != nil {
				w.expected(err)
			}
		}
		rest(ctx, time.Duration(rnd.ExpFloat64()*float64(200*time.Millisecond)))
	}
}

// expected checks that an error is one that faults explain.
func (w *world) expected(err error) {
	for _, known := range []error{
		redlock.ErrTaken, redlock.ErrNoQuorum, redlock.ErrQuarantined, redlock.ErrNoValidity,
		redlock.ErrLeaseExpired, redlock.ErrLeaseLost, context.DeadlineExceeded, context.Canceled,
	} {
		if errors.Is(err, known) {
			return
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violated("unexpected error: %v", err)
}

// aftermath checks promise 4 when the faults are over: what nobody owns runs out, and every
// name can be had again.
func (w *world) aftermath() {
	ctx := w.t.Context()
	time.Sleep(redlock.DefaultMaxTTL + 3*time.Second) // quarantines and forgotten keys end
	for _, name := range w.names {
		for i := range w.fleet.Len() {
			if owner, ok := w.fleet.Get(i, redlock.DefaultKeyPrefix+name); ok {
				w.violated("node %d still has %s of %s", i, name, owner)
			}
		}
		for _, h := range w.hosts {
			begin := time.Now()
			patience, cancel := context.WithTimeout(ctx, redlock.DefaultTTL)
			lease, err := h.locker.Acquire(patience, name)
			cancel()
			if err != nil {
				w.violated("%s cannot have %s though all faults are over: %v", h.name, name, err)
				continue
			}
			if took := time.Since(begin); took > 2*time.Second {
				w.violated("%s had to wait %v for a free name", h.name, took)
			}
			w.granted(h, lease)
			if err := lease.Release(ctx); err != nil {
				w.violated("release without faults: %v", err)
			}
		}
	}
}

func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
