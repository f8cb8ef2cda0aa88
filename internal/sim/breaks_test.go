package sim

import (
	"context"
	"math/rand/v2"
	"sync"

	"github.com/quorate/quorate/redlock"
)

// breaks are the leases that an operator has broken, whose holders may not know it yet: for them, and for whom
// they hand them on to in their process, there may be another holder with a higher token.
type breaks struct {
	mu     sync.Mutex
	names  map[string]int // that are being broken
	owners map[string]bool
}

func newBreaks() *breaks { return &breaks{names: map[string]int{}, owners: map[string]bool{}} }

// concern reports whether a lease of this owner is broken, or may be by now.
func (b *breaks) concern(name, owner string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.names[name] > 0 || b.owners[owner]
}

func (b *breaks) begin(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.names[name]++
}

func (b *breaks) end(found redlock.Status) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.names[found.Name]--
	for _, n := range found.Nodes {
		if n.Holder != "" {
			b.owners[n.Holder] = true
		}
	}
}

// operate frees a name now and then, whoever holds it. All promises hold for the others; and for everybody that
// contexts end, that a state is one that somebody has saved, and that the name can be had later.
func (l *leases) operate(ctx context.Context, h *host) {
	rnd := rand.New(rand.NewPCG(l.w.seed, uint64(len(h.name))+uint64(h.name[len(h.name)-1])<<8))
	for {
		rest(ctx, about(rnd, 20*l.pause))
		if ctx.Err() != nil {
			return
		}
		name := l.names[rnd.IntN(len(l.names))]
		l.w.did("break")
		l.w.breaks.begin(name)
		status, err := h.locker.Break(ctx, name)
		l.w.breaks.end(status)
		l.expected(err)
	}
}
