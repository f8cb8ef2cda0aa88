package main

import (
	"context"
	"fmt"
	"time"
)

// hung measures what it costs that nodes hang: their connections stay open, and nothing is answered.
func hung(ctx context.Context, g *ground) (*finding, error) {
	f := &finding{How: "Five nodes, of which one or two are stopped by SIGSTOP, so that they take connections and answer nothing. Each goroutine " +
		"acquires and releases a name of its own; it counts from the moment in which the nodes have stopped. Healthy and hung are measured " +
		"in turn. redsync is given twelve seconds for as many cycles as it can: its node timeout does nothing with the default options of go-redis."}
	t := table{Head: []string{"goroutines", "library", "hung", "cycles", "p50, ms", "p99, ms", "longest, ms"}}
	for _, workers := range []int{1, 16} {
		var all []series
		label := func(nodes int) string { return fmt.Sprintf("%d hung", nodes) }
		for nodes := range 3 {
			all = append(all, series{label(nodes), func(ctx context.Context) (sample, error) {
				return g.withHung(ctx, quorate, nodes, g.many(workers), g.span)
			}})
		}
		medians, err := g.inTurn(ctx, all...)
		if err != nil {
			return nil, err
		}
		healthy := medians[label(0)]
		for nodes := range 3 {
			m := medians[label(nodes)]
			t.add(hungLine(workers, quorate, nodes, m)...)
			if nodes > 0 {
				of := fmt.Sprintf("%d of 5 hung, goroutines: %d, ", nodes, workers)
				f.Aims = append(f.Aims,
					atMost(of+"p50 of the healthy", ratio(m["p50"], healthy["p50"]), 1.1, "×"),
					atMost(of+"p99 of the healthy", ratio(m["p99"], healthy["p99"]), 2, "×"))
			}
		}
	}
	// Once: a peer that hangs for seconds does so in every round.
	for nodes := range 3 {
		span := g.span
		if nodes > 0 && g.tiny {
			break // a single cycle takes longer than everything else
		}
		if nodes > 0 {
			span = 12 * time.Second
		}
		if err := g.clear(ctx); err != nil {
			return nil, err
		}
		m, err := g.withHung(ctx, redsyncLib, nodes, 1, span)
		if err != nil {
			return nil, fmt.Errorf("redsync: %w", err)
		}
		t.add(hungLine(1, redsyncLib, nodes, m)...)
	}
	f.Tables = []table{t}
	return f, nil
}

func hungLine(workers int, lib library, nodes int, m sample) []string {
	return []string{fmt.Sprint(workers), string(lib), fmt.Sprint(nodes), number(m["cycles"]), number(m["p50"]), number(m["p99"]), number(m["longest"])}
}

// withHung measures a contender while so many of five nodes hang.
func (g *ground) withHung(ctx context.Context, lib library, nodes, workers int, span time.Duration) (sample, error) {
	c, err := open(lib, g.addrs(5), g.times)
	if err != nil {
		return nil, err
	}
	defer c.close()
	// Connections, while all is well.
	if _, err := (load{workers: workers, span: g.warm}).run(ctx, c); err != nil {
		return nil, err
	}
	for i := range nodes {
		g.fleet[i].Pause()
		defer g.fleet[i].Resume() // before the contender is closed, which waits for answers
	}
	o, err := load{workers: workers, span: span}.run(ctx, c)
	if err != nil {
		return nil, err
	}
	m := sample{
		"cycles": float64(len(o.trips)), "p50": ms(quantile(o.trips, 0.5)), "p99": ms(quantile(o.trips, 0.99)),
		"longest": max(ms(quantile(o.trips, 1)), ms(o.longest)),
	}
	if len(o.trips) == 0 { // none was over in time: it takes that long at least
		m["p50"], m["p99"] = m["longest"], m["longest"]
	}
	return m, nil
}
