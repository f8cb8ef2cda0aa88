package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/test/rig"
)

const candidates = 3

// stand is the life of a process that stands for an election.
func (c *client) stand(ctx context.Context, commands <-chan command) error {
	own, err := openQuorate(c.Nodes, times{})
	if err != nil {
		return err
	}
	defer own.close()
	elector, err := leader.New(own.locker, "office", leader.WithTTL(c.TTL))
	if err != nil {
		return err
	}
	go func() {
		for range commands {
			c.tell(event{Kind: "resigning"})
			go func() { _ = elector.Resign(ctx) }()
		}
	}()
	// It has connections when it has been told who leads.
	go func() {
		for {
			if _, err := elector.Leader(ctx); err == nil {
				c.tell(event{Kind: readyEvent})
				return
			}
			pause(ctx, 10*time.Millisecond)
		}
	}()
	return elector.Run(ctx, func(ctx context.Context, term leader.Term) error {
		c.tell(event{Kind: "leads", Token: int64(term.Number)})
		<-ctx.Done()
		return nil
	})
}

// failover measures how long it takes until the next one leads.
func failover(ctx context.Context, g *ground) (*finding, error) {
	if err := g.clear(ctx); err != nil {
		return nil, err
	}
	c, err := g.hire(ctx, copies(candidates, clientConfig{times: times{TTL: g.termTTL}, Role: standing, Nodes: g.addrs(5)})...)
	defer c.dismiss()
	if err != nil {
		return nil, err
	}
	var resigned, killed []time.Duration
	for range g.resigns {
		// Whoever resigned stands back for a TTL: so one of the others is always ready.
		if !pause(ctx, g.termTTL*11/20) {
			return nil, context.Cause(ctx)
		}
		took, err := c.takeover(ctx, g.termTTL, func(m *member) (int64, error) {
			n := len(m.told("resigning"))
			m.Tell(command{Op: "resign"})
			err := c.until(ctx, "the leader to resign", patience, func() bool { return len(m.told("resigning")) > n })
			if err != nil {
				return 0, err
			}
			return m.told("resigning")[n].At, nil
		})
		if err != nil {
			return nil, err
		}
		resigned = append(resigned, took)
	}
	for range g.kills {
		// Anywhere between two extensions. Whoever came back last is ready, and has had time to wait.
		if !pause(ctx, g.termTTL/2+rand.N(g.termTTL/3)) {
			return nil, context.Cause(ctx)
		}
		var dead *member
		took, err := c.takeover(ctx, g.termTTL, func(m *member) (int64, error) {
			dead = m
			at := rig.Stamp()
			m.Kill()
			return at, nil
		})
		if err != nil {
			return nil, err
		}
		killed = append(killed, took)
		n := len(dead.told(readyEvent))
		if err := dead.start(); err != nil {
			return nil, err
		}
		err = c.until(ctx, "a candidate to be back", patience, func() bool { return len(dead.told(readyEvent)) > n })
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(resigned)
	slices.Sort(killed)
	t := table{Head: []string{"the leader", "times", "least, ms", "median, ms", "p99, ms"}}
	line := func(what string, all []time.Duration) {
		t.add(what, fmt.Sprint(len(all)), number(ms(quantile(all, 0))), number(ms(quantile(all, 0.5))), number(ms(quantile(all, 0.99))))
	}
	line("resigns", resigned)
	line("is killed (SIGKILL)", killed)
	return &finding{
		How: fmt.Sprintf("Three candidates, which are processes, five nodes, terms with a TTL of %v. From the moment in which the leader begins to "+
			"resign, or is killed, to the call of the next leader's function. `make leader-chaos` has more faults, and checks that no two led "+
			"at one time.", g.termTTL),
		Aims: []aim{
			atMost("resigns: p99", ms(quantile(resigned, 0.99)), 20, "ms"),
			atMost("is killed: p99", ms(quantile(killed, 0.99)), ms(g.termTTL+100*time.Millisecond), "ms"),
		},
		Tables: []table{t},
	}, nil
}

// leads is who has the highest term, and that.
func (c *crew) leads() (leads *member, term event) {
	for _, m := range c.members {
		for _, e := range m.told("leads") {
			if e.Token > term.Token {
				leads, term = m, e
			}
		}
	}
	return leads, term
}

// takeover ends the leader's term, and measures the time until the next begins.
func (c *crew) takeover(ctx context.Context, ttl time.Duration, end func(m *member) (at int64, err error)) (time.Duration, error) {
	if err := c.until(ctx, "somebody to lead", patience, func() bool { m, _ := c.leads(); return m != nil }); err != nil {
		return 0, err
	}
	m, before := c.leads()
	at, err := end(m)
	if err != nil {
		return 0, err
	}
	var next event
	err = c.until(ctx, "the next to lead", 10*ttl+patience, func() bool {
		_, next = c.leads()
		return next.Token > before.Token
	})
	return time.Duration(next.At - at), err
}
