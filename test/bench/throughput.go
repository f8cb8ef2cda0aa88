package main

import (
	"context"
	"fmt"
)

const manyWorkers = 256

// throughput measures cycles per second of workers who do not get in each other's way.
func throughput(ctx context.Context, g *ground, nodes int, libs ...library) (map[string]sample, table, error) {
	l := load{workers: g.many(manyWorkers)}
	tell := func(o *outcome) sample {
		return sample{"ops": o.ops, "p50": ms(quantile(o.trips, 0.5)), "p99": ms(quantile(o.trips, 0.99)), "refused": float64(o.refused)}
	}
	var all []series
	for _, lib := range libs {
		all = append(all, g.under(string(lib), lib, g.addrs(nodes), l, tell))
	}
	medians, err := g.inTurn(ctx, all...)
	t := table{Head: []string{"library", "cycles/s", "cycle p50, ms", "cycle p99, ms"}}
	for _, lib := range libs {
		m := medians[string(lib)]
		t.add(string(lib), number(m["ops"]), number(m["p50"]), number(m["p99"]))
	}
	return medians, t, err
}

func throughputFive(ctx context.Context, g *ground) (*finding, error) {
	medians, t, err := throughput(ctx, g, 5, quorate, redsyncLib)
	if err != nil {
		return nil, err
	}
	times := ratio(medians[string(quorate)]["ops"], medians[string(redsyncLib)]["ops"])
	return &finding{
		How:    fmt.Sprintf("%d goroutines, each of which acquires and releases a name of its own.", manyWorkers),
		Aims:   []aim{atLeast("cycles per second, of redsync's", times, 10, "×")},
		Tables: []table{t},
	}, nil
}

func throughputOne(ctx context.Context, g *ground) (*finding, error) {
	medians, t, err := throughput(ctx, g, 1, quorate, redislockLib, rueidisOne)
	if err != nil {
		return nil, err
	}
	own := medians[string(quorate)]["ops"]
	return &finding{
		How: fmt.Sprintf("The same %d goroutines, on one node: what those compare who have a single Redis. "+
			"redislock has neither fencing nor extension; rueidislock, which needs a majority of three keys by default, is set to one key.", manyWorkers),
		Aims: []aim{
			atLeast("cycles per second, of rueidislock's", ratio(own, medians[string(rueidisOne)]["ops"]), 1.6, "×"),
			atLeast("cycles per second, of redislock's", ratio(own, medians[string(redislockLib)]["ops"]), 2.8, "×"),
		},
		Tables: []table{t},
	}, nil
}
