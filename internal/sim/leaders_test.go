package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
)

// leaders is the layer of package leader: every host stands for one office, saves what the next is
// to know, resigns now and then or names another, falls ill, and watches who leads.
type leaders struct {
	w *world

	mu        sync.Mutex
	last      context.Context          // of the last term
	led       *host                    // by whom
	term      redlock.Token            // the highest that was led
	over      redlock.Token            // the highest whose function has returned
	begun     map[redlock.Token]string // who led each term
	tried     int                      // saves, each of which saves its number
	confirmed int                      // the highest that was confirmed
}

func newLeaders(w *world) *leaders { return &leaders{w: w, begun: map[redlock.Token]string{}} }

func (l *leaders) run(ctx context.Context, h *host, rnd *rand.Rand) {
	doctor := rand.New(rand.NewPCG(rnd.Uint64(), 0))
	news := &events{l: l, host: h}
	opts := []leader.Option{
		leader.WithLogger(l.w.log), leader.WithObserver(news.note), leader.WithPriority(rnd.IntN(8) / 7),
		leader.WithAddress(h.name + ":80"), leader.WithMaxTerm(time.Minute),
	}
	if rnd.IntN(2) == 0 {
		opts = append(opts, leader.WithHealthCheck(func(context.Context) error {
			if doctor.IntN(12) == 0 {
				return errors.New("ill")
			}
			return nil
		}, 5*time.Second))
	}
	e := must(leader.New(h.locker, "office", opts...))
	var watching sync.WaitGroup
	watching.Go(func() { l.watch(ctx, h, e) })
	defer watching.Wait()
	err := e.Run(ctx, func(ctx context.Context, term leader.Term) error {
		l.w.did("term")
		news.called++
		l.begin(ctx, h, term)
		defer l.finish(term)
		for range rnd.IntN(4) {
			rest(ctx, about(rnd, 5*time.Second))
			l.save(ctx, h, term)
		}
		rest(ctx, about(rnd, 10*time.Second))
		switch rnd.IntN(4) {
		case 0:
			l.w.did("resign")
			_ = e.Resign(ctx)
		case 1:
			l.w.did("transfer")
			_ = e.Transfer(ctx, l.w.hosts[rnd.IntN(len(l.w.hosts))].name)
		}
		return nil
	})
	if err != nil {
		l.w.violated("elector: %v", err)
	}
	news.end()
}

func (l *leaders) begin(ctx context.Context, h *host, term leader.Term) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun[term.Number] = h.name
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
	switch got, _ := strconv.Atoi(string(term.State())); {
	case got > l.tried:
		l.w.violated("term %d is given %d, which nobody saved", term.Number, got)
	case l.w.tame && h.knows(ctx) && got < l.confirmed:
		l.w.violated("term %d is given %d, though %d was saved", term.Number, got, l.confirmed)
	}
}

func (l *leaders) finish(term leader.Term) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = max(l.over, term.Number)
}

// save hands something over to the next leader.
func (l *leaders) save(ctx context.Context, h *host, term leader.Term) {
	l.w.did("hand over")
	l.mu.Lock()
	l.tried++
	n := l.tried
	l.mu.Unlock()
	err := term.Save(ctx, []byte(strconv.Itoa(n)))
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || !h.knows(ctx) {
		return
	}
	l.confirmed = max(l.confirmed, n)
	if got := string(term.State()); got != strconv.Itoa(n) {
		l.w.violated("term %d has saved %d and has %s", term.Number, n, got)
	}
}

// watch checks what a host is told of the leaders: the numbers grow, and what is told has happened.
func (l *leaders) watch(ctx context.Context, h *host, e *leader.Elector) {
	var last redlock.Token
	vacant := false
	for term := range e.Watch(ctx) {
		l.w.did("sighting")
		if term.Number == 0 {
			l.mu.Lock()
			if vacant {
				l.w.violated("%s sees two vacancies in a row", h.name)
			}
			// Locks that are gone for a TTL are those of a leader who is gone, if no node forgets any.
			if l.w.tame && l.term == last && l.over < last && l.last != nil && l.led.knows(l.last) {
				l.w.violated("%s sees a vacancy while term %d lasts", h.name, last)
			}
			vacant = true
			l.mu.Unlock()
			continue
		}
		if term.Number <= last {
			l.w.violated("%s sees term %d after %d", h.name, term.Number, last)
		}
		last, vacant = term.Number, false
		rest(ctx, time.Millisecond) // the function may have been called at this very instant
		l.mu.Lock()
		if by := l.begun[term.Number]; by != term.Leader || term.Address != by+":80" {
			l.w.violated("%s sees term %d of %s at %s, which is of %q", h.name, term.Number, term.Leader, term.Address, by)
		}
		l.mu.Unlock()
	}
}

func (l *leaders) audit() {}
func (l *leaders) end()   {}

// events checks that those of one host have the order that they promise. They come one at a time.
type events struct {
	l      *leaders
	host   *host
	called int // the leading function, that often

	began int
	term  redlock.Token // that has begun and not ended
	last  redlock.Token
}

func (v *events) note(ev leader.Event) {
	bad := false
	switch ev.Kind {
	case leader.Began:
		v.began++
		bad = v.term != 0 || ev.Term.Number <= v.last
		v.term, v.last = ev.Term.Number, ev.Term.Number
	case leader.Stuck:
		bad = v.term != ev.Term.Number
	case leader.Ended:
		bad = v.term != ev.Term.Number
		v.term = 0
	case leader.StoodBack:
		bad = v.term != 0
	}
	if bad {
		v.l.w.violated("%s: %s of term %d, while it has term %d", v.host.name, ev.Kind, ev.Term.Number, v.term)
	}
	if ev.Kind != leader.Began && ev.Kind != leader.Ended {
		v.l.w.did(string(ev.Kind))
	}
}

func (v *events) end() {
	if v.called != v.began || v.term != 0 {
		v.l.w.violated("%s: the function was called %d times, and began %d", v.host.name, v.called, v.began)
	}
}
