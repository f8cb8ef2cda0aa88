package sim

import (
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

// A world is one simulated fleet with its clients, and what must hold in it.
type world struct {
	t     *testing.T
	seed  uint64
	fleet *redlocktest.Fleet
	hosts []*host
	names []string
	log   *slog.Logger
	begin time.Time
	took  time.Duration // simulated
	tame  bool          // no node ever loses its memory, so that no state may be lost

	mu    sync.Mutex
	books map[string]*book
	ops   map[string]int
}

// A host is one client process.
type host struct {
	name   string
	clock  *redlocktest.Clock
	locker *redlock.Locker
}

// A book is what happened to one name.
type book struct {
	leases []*redlock.Lease // that may be valid
	token  redlock.Token    // the highest that was granted
	saved  string           // the last value whose save was confirmed
	open   []string         // values saved since, with an unknown outcome
	forgot bool             // a node forgot everything since the last confirmed save
	ever   []string         // all values that were ever saved or tried
}

func newWorld(t *testing.T, seed uint64, rnd *rand.Rand) *world {
	n := []int{1, 3, 3, 5}[rnd.IntN(4)]
	w := &world{t: t, seed: seed, fleet: redlocktest.Start(t, n), books: map[string]*book{}, ops: map[string]int{}, begin: time.Now()}
	out := io.Discard
	if testing.Verbose() {
		out = t.Output()
	}
	w.tame = rnd.IntN(2) == 0
	w.log = slog.New(slog.NewTextHandler(out, nil))
	for i := range 1 + rnd.IntN(3) {
		name := fmt.Sprintf("name-%d", i)
		w.names = append(w.names, name)
		w.books[name] = &book{}
	}
	for i := range 2 + rnd.IntN(3) {
		h := &host{name: fmt.Sprintf("host-%d", i), clock: redlocktest.NewClock()}
		// Wall clocks differ by less than the maximum TTL: then tokens grow even where every
		// node came back empty, because nothing is granted before the quarantine is over.
		h.clock.Skew(time.Duration(rnd.IntN(8001)-4000) * time.Millisecond)
		var err error
		h.locker, err = redlock.New(w.fleet.Host(h.name).Clients(),
			redlock.WithClock(h.clock), redlock.WithIdentity(h.name), redlock.WithLogger(w.log))
		if err != nil {
			t.Fatal(err)
		}
		w.hosts = append(w.hosts, h)
	}
	return w
}

// violated reports a broken promise.
func (w *world) violated(format string, args ...any) {
	w.t.Errorf("seed %d, at %v: %s", w.seed, time.Since(w.begin), fmt.Sprintf(format, args...))
}

func (w *world) count(op string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ops[op]++
}

// granted enters a lease and checks promises 1 and 2: nobody else holds the name now, and the
// token is higher than all before.
func (w *world) granted(h *host, lease *redlock.Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ops["granted"]++
	b := w.books[lease.Name()]
	if lease.Err() != nil {
		return // over before the caller had it
	}
	for _, other := range b.leases {
		if other.Err() == nil {
			w.violated("%s holds %s with token %d (%v left) while %s is granted it with token %d",
				other.Owner(), lease.Name(), other.Token(), other.Remaining(), h.name, lease.Token())
		}
	}
	if lease.Token() <= b.token {
		w.violated("token of %s went from %d to %d", lease.Name(), b.token, lease.Token())
	}
	b.token = lease.Token()
	b.leases = append(b.leases[:0], lease)
	w.read(b, lease)
}

// read checks that the state is the last that was confirmed, or one whose outcome is open. Where
// a node came back empty it may be an older one, because a quorum that has a value and a quorum
// that is asked need not share another node; but never one that nobody saved.
func (w *world) read(b *book, lease *redlock.Lease) {
	got := string(lease.State())
	switch {
	case got == b.saved: // a save that is still open may yet arrive, until the next one
		return
	case slices.Contains(b.open, got), b.forgot && (got == "" || slices.Contains(b.ever, got)):
		b.saved, b.open = got, nil
		return
	}
	w.violated("%s is granted with state %q, saved was %q, open %q", lease.Name(), got, b.saved, b.open)
}

// forget takes note that a node came back empty.
func (w *world) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ops["emptied"]++
	for _, b := range w.books {
		b.forgot = true
	}
}

// save saves a value under a lease and enters the outcome.
func (w *world) save(lease *redlock.Lease, value string) {
	w.mu.Lock()
	b := w.books[lease.Name()]
	b.open, b.ever = append(b.open, value), append(b.ever, value)
	w.mu.Unlock()
	err := lease.Save(w.t.Context(), []byte(value))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ops["save"]++
	if err == nil && b.token == lease.Token() {
		b.saved, b.open, b.forgot = value, nil, false
	}
}

// audit checks promises 1 and 3 at one moment: at most one holder believes that it holds, and
// a context that has not ended has validity left.
func (w *world) audit() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, b := range w.books {
		valid := 0
		for _, lease := range b.leases {
			if lease.Context().Err() == nil {
				valid++
				if lease.Remaining() <= 0 {
					w.violated("the context of %s outlives its validity", name)
				}
			}
		}
		if valid > 1 {
			w.violated("%d holders of %s", valid, name)
		}
	}
}
