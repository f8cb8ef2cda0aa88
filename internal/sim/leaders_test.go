package sim

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
)

// leaders is the layer of package leader: every host stands for one office, and resigns now and
// then.
type leaders struct {
	w *world

	mu   sync.Mutex
	last context.Context // of the last term
	led  *host           // by whom
	term redlock.Token   // the highest that was led
}

func newLeaders(w *world) *leaders { return &leaders{w: w} }

func (l *leaders) run(ctx context.Context, h *host, rnd *rand.Rand) {
	e := must(leader.New(h.locker, "office", leader.WithLogger(l.w.log)))
	err := e.Run(ctx, func(ctx context.Context, term leader.Term) error {
		l.w.did("term")
		l.begin(ctx, h, term)
		rest(ctx, about(rnd, 20*time.Second))
		return nil
	})
	if err != nil {
		l.w.violated("elector: %v", err)
	}
}

func (l *leaders) begin(ctx context.Context, h *host, term leader.Term) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil {
		return // over before it began
	}
	if l.last != nil && l.led.knows(l.last) && h.knows(ctx) {
		l.w.violated("%s leads term %d while term %d lasts", h.name, term.Number, l.term)
	}
	if term.Number <= l.term {
		l.w.violated("term %d after %d", term.Number, l.term)
	}
	l.last, l.led, l.term = ctx, h, term.Number
}

func (l *leaders) audit() {}
func (l *leaders) end()   {}
