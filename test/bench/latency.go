package main

import "context"

// latency measures one caller who has the fleet for himself.
func latency(ctx context.Context, g *ground) (*finding, error) {
	nodes := g.addrs(5)
	tell := func(o *outcome) sample {
		return sample{"p50": us(quantile(o.trips, 0.5)), "p99": us(quantile(o.trips, 0.99)), "lock": us(quantile(o.locks, 0.5))}
	}
	libs := []library{quorate, redsyncLib, floor}
	var all []series
	for _, lib := range libs {
		all = append(all, g.under(string(lib), lib, nodes, load{workers: 1}, tell))
	}
	medians, err := g.inTurn(ctx, all...)
	if err != nil {
		return nil, err
	}
	t := table{Head: []string{"", "cycle p50, µs", "cycle p99, µs", "acquire p50, µs"}}
	for _, lib := range libs {
		m := medians[string(lib)]
		t.add(string(lib), number(m["p50"]), number(m["p99"]), number(m["lock"]))
	}
	p50 := func(lib library) float64 { return medians[string(lib)]["p50"] }
	return &finding{
		How: "One goroutine acquires and releases. The floor is the least that two rounds cost with go-redis: five goroutines, " +
			"each with a client of its own, send a plain SET NX PX to their node at the same time, and the caller goes on with the third " +
			"answer; then the same with DEL. No script, no fence, no check of the owner, and nobody behind who would wait.",
		Aims: []aim{
			atMost("p50 of a cycle, of redsync's", ratio(p50(quorate), p50(redsyncLib)), 0.5, "×"),
			atMost("p50 of a cycle, of the floor", ratio(p50(quorate), p50(floor)), 1.3, "×"),
		},
		Tables: []table{t},
	}, nil
}
