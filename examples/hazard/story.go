package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

// tellAll tells the story without a gate and with one, and reports whether both went as they should.
func tellAll(ctx context.Context, ttl time.Duration, out io.Writer) (asTold bool, err error) {
	nodes, err := redlocktest.New(3, redlocktest.WithTCP())
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, nodes.Close()) }()
	// A lease can take some TTLs on a machine that is busy; nothing here takes longer.
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	if canFreeze {
		_, _ = fmt.Fprintf(out, "A and B are processes, paused by SIGSTOP; leases last %v. Nodes and store are embedded.\n", ttl)
	} else {
		_, _ = fmt.Fprintf(out, "A and B are processes; leases last %v. This system has no SIGSTOP, so A's pause is simulated:\n"+
			"it stands still by itself, and does not extend its lease. Nodes and store are embedded.\n", ttl)
	}
	asTold = true
	for _, gate := range []bool{false, true} {
		s := &story{cfg: config{Nodes: nodes.URLs(), TTL: ttl, Gate: gate}, out: out, tokens: map[string]redlock.Token{}}
		if err := s.tell(ctx); err != nil {
			return false, err
		}
		asTold = s.verdict() && asTold
	}
	return asTold, nil
}

// A story is one telling.
type story struct {
	cfg   config
	out   io.Writer
	began time.Time

	tokens  map[string]redlock.Token // of A and of B
	sold    int                      // buyers who were told that they have a unit
	refused bool                     // A's write was
	left    int                      // units in the store at the end
}

func (s *story) tell(ctx context.Context) (err error) {
	shop, err := redlocktest.New(1, redlocktest.WithTCP())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shop.Close()) }()
	s.cfg.Store = shop.URLs()[0]
	store := redis.NewClient(&redis.Options{Addr: shop.Addrs()[0]})
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := store.Set(ctx, stockKey, units, 0).Err(); err != nil {
		return err
	}
	s.heading()

	a, err := s.start("A", true)
	if err != nil {
		return err
	}
	defer a.end()
	if err := s.follow(ctx, a, looked); err != nil {
		return err
	}
	if err := a.freeze(); err != nil {
		return err
	}
	s.say("A", "is paused here: between its last look and its write")

	b, err := s.start("B", false)
	if err != nil {
		return err
	}
	defer b.end()
	if err := s.follow(ctx, b, ""); err != nil {
		return err
	}

	if err := errors.Join(a.write(), a.thaw()); err != nil {
		return err
	}
	s.say("A", "goes on, and knows of nothing")
	if err := s.follow(ctx, a, ""); err != nil {
		return err
	}
	s.left, err = store.Get(ctx, stockKey).Int()
	return err
}

func (s *story) start(who string, pause bool) (*child, error) {
	cfg := s.cfg
	cfg.Who, cfg.Pause = who, pause
	return startChild(cfg)
}

// follow prints what a holder tells until it has told this, or has ended.
func (s *story) follow(ctx context.Context, c *child, until kind) error {
	for {
		select {
		case e, more := <-c.events:
			switch {
			case !more && until == "":
				return c.err
			case !more:
				return errors.Join(fmt.Errorf("%s ended early", c.who), c.err)
			}
			s.hear(c.who, e)
			if e.Kind == until {
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// hear takes note of what a holder tells, and prints it.
func (s *story) hear(who string, e event) {
	switch e.Kind {
	case holds:
		s.tokens[who] = e.Token
		if who == "B" {
			s.say(who, "gets the lease, for A's has run out, and a higher token")
		} else {
			s.say(who, "gets the lease")
		}
		s.say(who, "reads: %d units", e.Left)
	case looked:
		s.say(who, "looks at its lease: valid")
	case wrote:
		s.sold++
		s.say(who, "writes: %d units; its buyer has one", e.Left)
	case refused:
		s.refused = true
		s.say(who, "writes, and is refused: %s; its buyer is told to try again", e.Text)
	case learned:
		s.say(who, "learns that its lease had run out")
	}
}

func (s *story) heading() {
	title := "WITHOUT A GATE: the store takes every write"
	if s.cfg.Gate {
		title = "WITH A GATE: the store refuses a token that is lower than one it has seen"
	}
	s.began = time.Now()
	_, _ = fmt.Fprintf(s.out, "\n%s\n  %6s  %s  %-16s  %s\n", title, "time", "who", "token", "what")
}

func (s *story) say(who, format string, args ...any) {
	_, _ = fmt.Fprintf(s.out, "  %5.2fs  %-3s  %-16d  %s\n", time.Since(s.began).Seconds(), who, s.tokens[who], fmt.Sprintf(format, args...))
}

// verdict says what came of it, and reports whether that is what should have come: the late write
// landed where there is no gate, and was refused where there is one.
func (s *story) verdict() (asTold bool) {
	gone := units - s.left
	verdict := fmt.Sprintf("%d sold, %d gone from the store", s.sold, gone)
	switch {
	case s.sold > gone:
		verdict += fmt.Sprintf(": OVERSOLD by %d, by a holder whose lease was in order when it looked", s.sold-gone)
	case s.refused:
		verdict += ": the late write did no harm"
	}
	_, _ = fmt.Fprintf(s.out, "  verdict: %s\n", verdict)

	asTold = s.tokens["A"] < s.tokens["B"] && gone == 1
	if s.cfg.Gate {
		asTold = asTold && s.refused && s.sold == 1
	} else {
		asTold = asTold && !s.refused && s.sold == 2
	}
	if !asTold {
		_, _ = fmt.Fprintln(s.out, "  The story did not go as told.")
	}
	return asTold
}
