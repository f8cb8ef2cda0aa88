package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/redlock"
)

// leases is the layer of the lease itself: every host takes names in every way, holds them for a
// while, extends, saves, and lets them go or forgets them.
type leases struct {
	w     *world
	names []string
	hold  time.Duration // mean
	pause time.Duration // mean

	mu    sync.Mutex
	books map[string]*book
}

// A book is what happened to one name.
type book struct {
	lease  *redlock.Lease // the last that was granted
	holder *host
	late   *redlock.Lease // seen at the end of its validity, with a context that had not ended
	lateAt time.Time
	token  redlock.Token   // the highest that was granted
	saved  string          // the last value whose save was confirmed, or that was read
	open   []string        // values saved since, with an unknown outcome, oldest first
	forgot int             // how often a node forgot everything since the last confirmed save began
	ever   map[string]bool // values that were ever to be saved
	seen   map[string]bool // values that a holder was granted with
}

func newBook() *book { return &book{ever: map[string]bool{"": true}, seen: map[string]bool{}} }

func newLeases(w *world, rnd *rand.Rand) *leases {
	l := &leases{
		w: w, books: map[string]*book{},
		hold:  []time.Duration{20 * time.Millisecond, 200 * time.Millisecond, time.Second}[rnd.IntN(3)],
		pause: []time.Duration{300 * time.Millisecond, 2 * time.Second, 10 * time.Second}[rnd.IntN(3)],
	}
	for i := range 1 + rnd.IntN(8) {
		name := fmt.Sprintf("name-%d", i)
		l.names = append(l.names, name)
		l.books[name] = newBook()
	}
	w.names = append(w.names, l.names...)
	return l
}

func (l *leases) run(ctx context.Context, h *host, rnd *rand.Rand) {
	var workers sync.WaitGroup
	workers.Go(func() { l.operate(ctx, h) })
	for range 1 + rnd.IntN(2) {
		r := rand.New(rand.NewPCG(rnd.Uint64(), 0))
		workers.Go(func() {
			for ctx.Err() == nil {
				if r.IntN(4) == 0 {
					l.crowd(ctx, h, r)
				} else if !l.once(ctx, h, r) {
					rest(ctx, about(r, l.pause))
				}
				rest(ctx, about(r, l.pause))
			}
		})
	}
	workers.Wait()
}

// once takes one name, if it can be had.
func (l *leases) once(ctx context.Context, h *host, rnd *rand.Rand) bool {
	name := l.names[rnd.IntN(len(l.names))]
	auto := rnd.IntN(2) == 0
	lease, err := l.acquire(ctx, h, rnd, name, auto)
	l.w.audit()
	if err != nil {
		l.expected(err)
		return false
	}
	l.granted(h, lease)
	hold := about(rnd, l.hold)
	for i := range rnd.IntN(4) {
		rest(lease.Context(), hold/4)
		switch rnd.IntN(4) {
		case 0, 1:
			_ = l.save(lease, fmt.Sprintf("%s/%d/%d", h.name, lease.Token(), i))
		case 2:
			l.w.did("extend")
			l.expected(lease.Extend(ctx))
		case 3:
			l.w.did("inspect")
			_, err := h.locker.Inspect(ctx, name)
			l.expected(err)
		}
		l.w.audit()
	}
	rest(lease.Context(), hold)
	if rnd.IntN(10) == 0 && !auto { // forgotten: it ends by itself
		l.w.did("forget")
		return true
	}
	l.w.did("release")
	l.expected(lease.Release(ctx))
	l.w.audit()
	return true
}

// crowd has several goroutines of a host want one name for a moment, at the same time, so that it
// is handed on inside the process.
func (l *leases) crowd(ctx context.Context, h *host, rnd *rand.Rand) {
	name := l.names[rnd.IntN(len(l.names))]
	hold := time.Duration(1 + rnd.IntN(1+int(redlock.DefaultTTL)/40))
	var all sync.WaitGroup
	for range 2 + rnd.IntN(4) {
		r := rand.New(rand.NewPCG(rnd.Uint64(), 0))
		all.Go(func() {
			l.w.did("acquire")
			patience, cancel := context.WithTimeout(ctx, time.Duration(r.IntN(20_000))*time.Millisecond)
			defer cancel()
			lease, err := h.locker.Acquire(patience, name)
			if err != nil {
				l.expected(err)
				return
			}
			l.granted(h, lease)
			if r.IntN(3) == 0 {
				_ = l.save(lease, fmt.Sprintf("%s/%d", h.name, lease.Token()))
			}
			rest(lease.Context(), about(r, hold))
			l.w.audit()
			l.w.did("release")
			l.expected(lease.Release(ctx))
		})
	}
	all.Wait()
	l.w.audit()
}

func (l *leases) acquire(ctx context.Context, h *host, rnd *rand.Rand, name string, auto bool) (*redlock.Lease, error) {
	if rnd.IntN(3) == 0 {
		l.w.did("try")
		return h.locker.TryAcquire(ctx, name, redlock.WithAutoExtend(auto))
	}
	l.w.did("acquire")
	patience, cancel := context.WithTimeout(ctx, time.Duration(rnd.IntN(20_000))*time.Millisecond)
	defer cancel()
	return h.locker.Acquire(patience, name, redlock.WithAutoExtend(auto))
}

// granted enters a lease and checks promises 1 and 2: nobody else holds the name now, and the
// token is higher than all before.
func (l *leases) granted(h *host, lease *redlock.Lease) {
	l.w.did("granted")
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.books[lease.Name()]
	if lease.Err() != nil {
		return // over before the caller had it
	}
	if lease.Token() <= b.token && l.w.breaks.concern(lease.Name(), lease.Owner()) {
		return // it was handed on in a process that does not know yet that it was broken
	}
	if other := b.lease; other != nil && b.holder.knows(other) && h.knows(lease) && !l.w.breaks.concern(lease.Name(), other.Owner()) {
		l.w.violated("%s holds %s with token %d (%v left) while %s is granted it with token %d",
			other.Owner(), lease.Name(), other.Token(), other.Remaining(), h.name, lease.Token())
	}
	if b.lease != nil && b.lease.Owner() == lease.Owner() {
		l.w.did("handed on")
	}
	if lease.Token() <= b.token {
		l.w.violated("token of %s went from %d to %d", lease.Name(), b.token, lease.Token())
	}
	b.token, b.lease, b.holder = lease.Token(), lease, h
	l.read(b, lease)
}

// read checks that the state is the last that was confirmed, or one whose outcome is open. Where
// a node came back empty it may be an older one, because a quorum that has a value and a quorum
// that is asked need not share another node; but never one that nobody saved.
func (l *leases) read(b *book, lease *redlock.Lease) {
	got := string(lease.State())
	b.seen[got] = true
	if got == b.saved { // what is still open may yet arrive, until the next save
		return
	}
	if i := slices.Index(b.open, got); i >= 0 {
		b.saved, b.open = got, b.open[i+1:]
		return
	}
	if b.forgot > 0 && b.ever[got] {
		b.saved, b.open = got, nil
		return
	}
	l.w.violated("%s is granted with state %q, saved was %q, open %q", lease.Name(), got, b.saved, b.open)
}

// forgot takes note that a node came back empty.
func (l *leases) forgot() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.books {
		b.forgot++
	}
}

// save saves a value under a lease and enters the outcome.
func (l *leases) save(lease *redlock.Lease, value string) error {
	l.w.did("save")
	l.mu.Lock()
	b := l.books[lease.Name()]
	b.open, b.ever[value] = append(b.open, value), true
	before := b.forgot
	l.mu.Unlock()
	err := lease.Save(l.w.t.Context(), []byte(value))
	l.expected(err)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
	case b.token == lease.Token():
		b.saved, b.open, b.forgot = value, nil, b.forgot-before
	case l.w.breaks.concern(lease.Name(), lease.Owner()): // which may have got the name back
	case b.token > lease.Token() && !b.seen[value] && b.forgot == before:
		l.w.violated("token %d saved %s behind the back of %d", lease.Token(), lease.Name(), b.token)
	}
	return err
}

// audit checks promise 3 at one moment: a context that has not ended has validity left. That no
// other lease of the name is valid is checked at each grant.
func (l *leases) audit() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, b := range l.books {
		if b.lease == nil || b.lease.Remaining() > 0 {
			continue
		}
		select {
		case <-b.lease.Context().Done():
			continue
		default:
		}
		// The timer that ends it fires at the same instant: it has run once time has moved on.
		if b.late != b.lease {
			b.late, b.lateAt = b.lease, time.Now()
		}
		if !time.Now().After(b.lateAt) {
			continue
		}
		// Where nobody asks the context, a host that slept finds out by looking at its clock now and
		// then; whoever does ask is told at once.
		if b.holder.rested() > 2*time.Second || b.holder.knows(b.lease.Context()) {
			l.w.violated("the context of %s outlives its validity", name)
		}
	}
}

// expected checks that an error, if there is one, is one that faults explain.
func (l *leases) expected(err error) {
	if err == nil {
		return
	}
	for _, known := range []error{
		redlock.ErrTaken, redlock.ErrNoQuorum, redlock.ErrQuarantined, redlock.ErrNoValidity,
		redlock.ErrLeaseExpired, redlock.ErrLeaseLost, redlock.ErrStaleToken, context.DeadlineExceeded, context.Canceled,
	} {
		if errors.Is(err, known) {
			return
		}
	}
	l.w.violated("unexpected error: %v", err)
}

// end waits until quarantines and forgotten keys are over, and what clocks that were set back add
// to them, and checks promise 4: what nobody owns has run out, and every name can be had again,
// by every host, at once. Then come the drills.
func (l *leases) end() {
	w, ctx := l.w, l.w.t.Context()
	time.Sleep(redlock.DefaultMaxTTL + w.nodes.setBack + 3*time.Second)
	for _, name := range l.names {
		for i := range w.fleet.Len() {
			if owner, ok := w.fleet.Get(i, redlock.DefaultKeyPrefix+name); ok {
				w.violated("node %d still has %s of %s", i, name, owner)
			}
		}
		for _, h := range w.hosts {
			begin := time.Now()
			lease := l.have(ctx, h, name)
			if lease == nil {
				continue
			}
			if took := time.Since(begin); took > 2*time.Second {
				w.violated("%s had to wait %v for a free name", h.name, took)
			}
			l.letGo(ctx, lease)
		}
	}
	l.drills(ctx)
}

// have takes a free name while there are no faults, or none that may matter.
func (l *leases) have(ctx context.Context, h *host, name string, opts ...redlock.LeaseOption) *redlock.Lease {
	patience, cancel := context.WithTimeout(ctx, redlock.DefaultTTL+2*time.Second)
	defer cancel()
	lease, err := h.locker.Acquire(patience, name, opts...)
	if err != nil {
		l.w.violated("%s cannot have %s though nothing is in its way: %v", h.name, name, err)
		return nil
	}
	l.granted(h, lease)
	return lease
}

func (l *leases) letGo(ctx context.Context, lease *redlock.Lease) {
	if err := lease.Release(ctx); err != nil {
		l.w.violated("release of %s without faults: %v", lease.Name(), err)
	}
}
