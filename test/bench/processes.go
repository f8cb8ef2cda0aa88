package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// hotProcesses measures processes that all want the same name, all the time: how long it is free
// between two of them, who gets it, and what that costs the nodes.
func hotProcesses(ctx context.Context, g *ground) (*finding, error) {
	f := &finding{How: fmt.Sprintf("All processes want one name, with one goroutine each, and hold it for %v. A hand-over goes from the "+
		"moment in which a process begins to release to that in which another has acquired, by the machine's clock. Commands are those "+
		"that all nodes together have carried out, per hand-over, those within scripts included. quorate and redsync have five nodes, "+
		"rueidislock one, with a majority of three keys.", g.hold)}
	t := table{Head: []string{"processes", "library", "holders/s", "hand-over p50, ms", "p99, ms", "Jain's index", "commands", "of them scripts", "longest wait, ms"}}
	perHandOver := map[int]float64{}
	for i, processes := range g.processes {
		libs := []library{quorate}
		if i == 0 {
			libs = []library{quorate, redsyncLib, rueidisLib}
		}
		var all []series
		for _, lib := range libs {
			all = append(all, series{string(lib), func(ctx context.Context) (sample, error) { return g.handOver(ctx, lib, processes) }})
		}
		medians, err := g.inTurn(ctx, all...)
		if err != nil {
			return nil, fmt.Errorf("%d processes: %w", processes, err)
		}
		for _, lib := range libs {
			m := medians[string(lib)]
			t.add(fmt.Sprint(processes), string(lib), number(m["ops"]), number(m["p50"]), number(m["p99"]), number(m["jain"]),
				number(m["commands"]), number(m["scripts"]), number(m["longest"]))
		}
		m := medians[string(quorate)]
		perHandOver[processes] = m["commands"]
		if i == 0 {
			f.Aims = append(f.Aims,
				atMost(fmt.Sprintf("%d processes: hand-over p50", processes), m["p50"], 1, "ms"),
				atMost(fmt.Sprintf("%d processes: hand-over p99", processes), m["p99"], 10, "ms"),
				atLeast(fmt.Sprintf("%d processes: Jain's index", processes), m["jain"], 0.95, ""))
		}
	}
	least, most := g.processes[0], g.processes[len(g.processes)-1]
	f.Notes = append(f.Notes, fmt.Sprintf("From %d to %d processes, the commands per hand-over grow by a factor of %s.",
		least, most, number(ratio(perHandOver[most], perHandOver[least]))))
	f.Tables = []table{t}
	return f, nil
}

// handOver has processes contend, once.
func (g *ground) handOver(ctx context.Context, lib library, processes int) (sample, error) {
	const nodes = 5
	c, err := g.hire(ctx, copies(processes, clientConfig{
		times: g.times, Role: contending, Library: lib, Nodes: g.addrs(nodes), Workers: 1, Hold: g.hold,
	})...)
	defer c.dismiss()
	if err != nil {
		return nil, err
	}
	before, err := g.calls(ctx, nodes)
	if err != nil {
		return nil, err
	}
	// Fairness is a matter of many hand-overs.
	begin, end, err := c.work(ctx, g.warm, 2*g.span)
	if err != nil {
		return nil, err
	}
	after, err := g.calls(ctx, nodes)
	if err != nil {
		return nil, err
	}
	// What was called counts for all of the time, so it is compared with all hand-overs.
	all, err := c.spells(0, 1<<62)
	if err != nil {
		return nil, err
	}
	counted, err := c.spells(begin, end)
	if err != nil {
		return nil, err
	}
	took, _ := handOvers(counted)
	_, overs := handOvers(all)
	called := since(before, after)
	var waits []int64
	for _, s := range counted {
		waits = append(waits, s.Acquired-s.Asked)
	}
	slices.Sort(waits)
	return sample{
		"ops": float64(len(counted)) / (2 * g.span).Seconds(), "p50": ms(quantile(took, 0.5)), "p99": ms(quantile(took, 0.99)),
		"jain": jain(shares(counted, processes)), "commands": ratio(called.total(), overs), "scripts": ratio(called.scripts(), overs),
		"longest": ms(time.Duration(quantile(waits, 1))),
	}, nil
}

// handOvers are how long the name was free whenever it went from one process to another, sorted, and how
// often that was.
func handOvers(spells []spell) (took []time.Duration, n float64) {
	for i := 1; i < len(spells); i++ {
		if spells[i].by != spells[i-1].by {
			took = append(took, time.Duration(spells[i].Acquired-spells[i-1].Released))
		}
	}
	slices.Sort(took)
	return took, float64(len(took))
}

// shares are how often each process held the name.
func shares(spells []spell, processes int) []int {
	all := make([]int, processes)
	for _, s := range spells {
		all[s.by]++
	}
	return all
}
