package sim

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

// A world is one simulated fleet with its hosts, and what runs on them.
type world struct {
	t      *testing.T
	seed   uint64
	fleet  *redlocktest.Fleet
	nodes  *nodes
	breaks *breaks
	hosts  []*host
	layers []layer
	leases *leases
	names  []string // of locks that the nodes are looked at for
	log    *slog.Logger
	begin  time.Time
	span   time.Duration // under faults
	tame   bool          // no node ever loses its memory

	mu     sync.Mutex
	counts counts
}

// A host is one client process.
type host struct {
	name   string
	clock  *redlocktest.Clock
	locker *redlock.Locker

	mu     sync.Mutex
	asleep bool
	wokeAt time.Time // when it last woke up
}

// sleep lets the machine sleep, cut off, as when a laptop is closed. What it believes meanwhile
// it does not believe: see [host.knows].
func (w *world) sleep(h *host, d time.Duration) {
	h.mu.Lock()
	again := h.asleep
	h.asleep = true
	h.mu.Unlock()
	if again {
		return
	}
	link := w.fleet.Host(h.name)
	link.Partition()
	h.clock.Sleep()
	rest(w.t.Context(), d)
	h.mu.Lock()
	h.clock.Wake()
	h.asleep, h.wokeAt = false, time.Now()
	h.mu.Unlock()
	link.Heal()
}

// knows tells whether a lease, or what stands on one, is in force as far as its host knows. It is
// not while the host sleeps.
func (h *host) knows(of interface{ Err() error }) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.asleep && of.Err() == nil
}

// rested is for how long the host has been awake.
func (h *host) rested() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asleep {
		return 0
	}
	return time.Since(h.wokeAt)
}

// A layer is a package under simulation: its operations and its invariants.
type layer interface {
	// run is one host's share of the work, until ctx ends; then it lets go of everything.
	run(ctx context.Context, h *host, rnd *rand.Rand)
	// audit checks what must hold at every moment.
	audit()
	// end checks what must hold when the faults are over and nothing runs any more.
	end()
}

// simulate lives one seed.
func simulate(t *testing.T, seed uint64, span time.Duration) counts {
	var total counts
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		w := newWorld(t, seed, span, rnd)
		w.live(rnd)
		for _, l := range w.layers {
			l.end()
		}
		for _, h := range w.hosts {
			require.NoError(t, h.locker.Close())
		}
		w.counts.Simulated = time.Since(w.begin)
		w.counts.Commands = w.commands()
		total = w.counts
	})
	return total
}

func newWorld(t *testing.T, seed uint64, span time.Duration, rnd *rand.Rand) *world {
	w := &world{t: t, seed: seed, span: span, begin: time.Now(), tame: rnd.IntN(2) == 0, counts: newCounts(), breaks: newBreaks()}
	w.counts.Seeds = 1
	w.log = slog.New(slog.DiscardHandler)
	if testing.Verbose() && *oneSeed != 0 {
		w.log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	w.nodes = newNodes(w)
	w.fleet = redlocktest.Start(t, []int{1, 3, 3, 3, 3, 5}[rnd.IntN(6)], redlocktest.WithObserver(w.nodes.observe))
	for i := range 2 + rnd.IntN(2) {
		h := &host{name: fmt.Sprintf("host-%d", i), clock: redlocktest.NewClock()}
		h.clock.Skew(wallClockError(rnd))
		var err error
		h.locker, err = redlock.New(w.fleet.Host(h.name).Clients(),
			redlock.WithClock(h.clock), redlock.WithIdentity(h.name), redlock.WithLogger(w.log))
		require.NoError(t, err)
		w.hosts = append(w.hosts, h)
	}
	w.leases = newLeases(w, rnd)
	w.layers = append(w.layers, w.leases)
	if rnd.IntN(3) == 0 {
		w.layers = append(w.layers, newLeaders(w))
	}
	if rnd.IntN(3) == 0 {
		w.layers = append(w.layers, newGuards(w))
	}
	if w.tame && rnd.IntN(2) == 0 {
		// What is on record of ticks is state, which a node that comes back empty may have
		// forgotten; see the package's documentation.
		w.layers = append(w.layers, newTicks(w))
	}
	return w
}

// wallClockError is by how much a host's wall clock may be off. Wall clocks differ by less than
// the maximum TTL: then tokens grow even where every node came back empty, because nothing is
// granted before the quarantine is over.
func wallClockError(rnd *rand.Rand) time.Duration {
	return time.Duration(rnd.IntN(8001)-4000) * time.Millisecond
}

// live runs all layers on all hosts under faults.
func (w *world) live(rnd *rand.Rand) {
	ctx, stop := context.WithTimeout(w.t.Context(), w.span)
	defer stop()
	fork := func() *rand.Rand { return rand.New(rand.NewPCG(w.seed, rnd.Uint64())) }
	var wg sync.WaitGroup
	for _, h := range w.hosts {
		for _, l := range w.layers {
			r := fork()
			wg.Go(func() { l.run(ctx, h, r) })
		}
	}
	f := &faults{w: w, rnd: fork()}
	r := fork()
	wg.Go(func() { f.run(ctx) })
	wg.Go(func() { f.echo(ctx, r) })
	wg.Go(func() {
		for ctx.Err() == nil {
			w.audit()
			rest(ctx, 500*time.Millisecond)
		}
	})
	wg.Wait()
	f.end()
	w.nodes.wait()
}

// audit checks what must hold at every moment.
func (w *world) audit() {
	w.nodes.audit()
	for _, l := range w.layers {
		l.audit()
	}
}

// forgot tells those who keep books that a node came back empty.
func (w *world) forgot(node int) {
	w.nodes.forgot(node)
	w.leases.forgot()
}

// commands is how many commands the nodes have run.
func (w *world) commands() int {
	n := 0
	for i := range w.fleet.Len() {
		n += w.fleet.Commands(i)
	}
	return n
}

// violated reports a broken promise.
func (w *world) violated(format string, args ...any) {
	w.t.Errorf("seed %d, at %v: %s", w.seed, time.Since(w.begin), fmt.Sprintf(format, args...))
}

// rest waits, but no longer than ctx lasts.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// about is a random time with this mean.
func about(rnd *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(rnd.ExpFloat64() * float64(mean))
}
