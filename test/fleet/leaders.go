package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/test/rig"
)

// leadersConfig is what a run with an election is asked for.
type leadersConfig struct {
	rounds int
	ttl    time.Duration
	log    func(string)
	file   string // a file for all events, or ""
}

func leadersDefaults() leadersConfig {
	return leadersConfig{rounds: 30, ttl: 2 * time.Second, log: func(string) {}}
}

// The kinds of faults.
const (
	resigned    = "resigns"
	killed      = "killed (SIGKILL)"
	stoppedLate = "paused past its TTL (SIGSTOP)"
	partitioned = "cut off from all nodes"
)

var faults = []string{resigned, killed, stoppedLate, partitioned}

// ballot is one run with an election.
type ballot struct {
	*stage
	leadersConfig
	places     []*place
	asked      int
	resignedAt int64
	takeovers  map[string][]time.Duration
	refused    int   // stale writes of paused leaders
	over       int64 // stamp of the end of the last round
	before     string
}

// leaders carries a run out and says what there was.
func leaders(ctx context.Context, c leadersConfig) (r *leadersReport, err error) {
	s, err := newStage(c.log, c.file)
	if err != nil {
		return nil, err
	}
	defer func() { s.strike(&err, recover()) }()
	s.set()
	b := &ballot{stage: s, leadersConfig: c, takeovers: map[string][]time.Duration{}, before: load()}
	for i := range replicas {
		p := s.place(clientConfig{Role: "candidate", Replica: i, TTL: c.ttl})
		b.places = append(b.places, p)
		if err := s.launch(p); err != nil {
			return nil, err
		}
	}
	begun := rig.Stamp()
	for round := range c.rounds {
		for _, fault := range faults {
			if err := b.round(ctx, fault); err != nil {
				return nil, fmt.Errorf("round %d, leader %s: %w", round, fault, err)
			}
		}
		c.log(fmt.Sprintf("round %d of %d is over after %v", round+1, c.rounds, time.Duration(rig.Stamp()-begun).Round(time.Second)))
	}
	b.over = rig.Stamp()
	for _, p := range b.places {
		if !p.process.End(time.Minute) {
			return nil, fmt.Errorf("%s did not end within a minute, or not well; %s", p.config.identity(), s.complaints())
		}
	}
	return b.report(ctx)
}

// round has the leader suffer from a fault, and measures how long it takes until another leads.
func (b *ballot) round(ctx context.Context, fault string) error {
	for {
		if err := b.suffer(ctx, fault); !errors.Is(err, errLapsed) {
			return err
		}
	}
}

// errLapsed tells that a term had ended without a fault before one could come.
var errLapsed = errors.New("the term had ended by itself")

// suffer is one attempt at a round.
func (b *ballot) suffer(ctx context.Context, fault string) error {
	before, err := b.settle(ctx)
	if err != nil {
		return err
	}
	// So that the fault comes anywhere between two extensions.
	if !pause(ctx, rand.N(b.ttl/3)) {
		return context.Cause(ctx)
	}
	if now, ok := b.leader(); !ok || now.Token != before.Token {
		return errLapsed
	}
	p := before.by.place
	n := b.journal.len()
	at := rig.Stamp()
	// From the event with which a leader that is told to do it says that it is about to.
	said := func(k kind) (int64, error) {
		var e told
		err := b.await(ctx, fmt.Sprintf("%s to be %s", p.config.identity(), k), 10*b.ttl, func() (ok bool) {
			e, ok = b.journal.first(n, func(t told) bool {
				return t.by == before.by && (t.Kind == k || k == pausing && t.Kind == ended && t.Token == before.Token)
			})
			return ok
		})
		if err == nil && e.Kind != k {
			return 0, errLapsed
		}
		return e.At, err
	}
	switch fault {
	case resigned:
		p.process.Tell(command{Op: "resign"})
		at, err = said(resigning)
		b.resignedAt = at
	case killed:
		p.process.Kill()
	case stoppedLate:
		p.process.Tell(command{Op: "pause", Token: before.Token})
		at, err = said(pausing)
	case partitioned:
		p.links.Cut()
	}
	if err != nil {
		return err
	}
	next, err := b.successor(ctx, n, before)
	if err != nil {
		return err
	}
	b.takeovers[fault] = append(b.takeovers[fault], time.Duration(next.At-at))
	return b.mend(ctx, fault, n, before, next)
}

// mend makes good what a fault has done, and sees that the old leader finds out.
func (b *ballot) mend(ctx context.Context, fault string, n int, before, next told) error {
	p := before.by.place
	saw := func(k kind, by *process, token int64) error {
		return b.await(ctx, fmt.Sprintf("%s, by %s", k, by.config.identity()), 10*b.ttl, func() bool {
			_, ok := b.journal.first(n, func(t told) bool { return t.by == by && t.Kind == k && t.Token == token })
			return ok
		})
	}
	switch fault {
	case killed:
		return b.launch(p)
	case stoppedLate:
		// Once the successor has written, the write of the old leader must not pass.
		if err := saw(wrote, next.by, next.Token); err != nil {
			return err
		}
		p.process.Cont()
		if err := saw(refused, before.by, before.Token); err != nil {
			return err
		}
		b.refused++
	case partitioned:
		defer p.links.Heal()
	}
	return saw(ended, before.by, before.Token)
}

// settle waits until somebody leads and all others can take over: they have been told who leads,
// and do not stand back after a resignation any more.
func (b *ballot) settle(ctx context.Context) (leads told, err error) {
	b.asked++
	for _, p := range b.places {
		p.process.Tell(command{Op: "ask", N: b.asked})
	}
	standsBack := b.resignedAt + int64(b.ttl+b.ttl/4)
	err = b.await(ctx, "all candidates to be able to take over", 20*b.ttl, func() (ok bool) {
		for _, p := range b.places {
			if _, ok := b.journal.first(0, func(t told) bool { return t.by == p.process && t.Kind == asked && t.N == b.asked }); !ok {
				return false
			}
		}
		leads, ok = b.leader()
		return ok && rig.Stamp() > standsBack
	})
	return leads, err
}

// leader is the one whose term began last, if that goes on.
func (b *ballot) leader() (last told, ok bool) {
	for _, t := range b.journal.since(0) {
		switch {
		case t.Kind == led && t.Token > last.Token:
			last, ok = t, true
		case t.Kind == ended && t.Token == last.Token:
			ok = false
		}
	}
	return last, ok && last.by == last.by.place.process
}

// successor waits for the first term of another process.
func (b *ballot) successor(ctx context.Context, n int, before told) (next told, err error) {
	err = b.await(ctx, "a successor", 20*b.ttl, func() (ok bool) {
		next, ok = b.journal.first(n, func(t told) bool { return t.Kind == led && t.Token > before.Token && t.by != before.by })
		return ok
	})
	return next, err
}
