package main

import (
	"context"
	"fmt"
)

// hotName measures goroutines of one process that all want the same name, all the time.
func hotName(ctx context.Context, g *ground) (*finding, error) {
	f := &finding{How: "All goroutines of one process want one name, five nodes, nothing is done under it. redsync polls, as by default: every 50 " +
		"to 250 ms, 32 times, and then again. A wait goes from asking for the name to holding it, those that are not over at the end included."}
	t := table{Head: []string{"goroutines", "library", "cycles/s", "mean wait, ms", "p99, ms", "longest, ms", "longest of mean", "Jain's index"}}
	tell := func(o *outcome) sample {
		average := mean(o.locks)
		return sample{
			"ops": o.ops, "mean": average / 1e6, "p99": ms(quantile(o.locks, 0.99)), "longest": ms(o.longest),
			"spread": ratio(float64(o.longest), average), "jain": jain(o.shares),
		}
	}
	for _, workers := range []int{16, 256} {
		l := load{workers: g.many(workers), hot: true}
		medians, err := g.inTurn(ctx,
			g.under(string(quorate), quorate, g.addrs(5), l, tell),
			g.under(string(redsyncLib), redsyncLib, g.addrs(5), l, tell))
		if err != nil {
			return nil, fmt.Errorf("%d goroutines: %w", workers, err)
		}
		for _, lib := range []library{quorate, redsyncLib} {
			m := medians[string(lib)]
			t.add(fmt.Sprint(workers), string(lib), number(m["ops"]), number(m["mean"]), number(m["p99"]), number(m["longest"]), number(m["spread"]), number(m["jain"]))
		}
		m := medians[string(quorate)]
		f.Aims = append(f.Aims,
			atMost(fmt.Sprintf("%d goroutines: longest wait, of the mean", workers), m["spread"], 5, "×"))
		f.Notes = append(f.Notes, fmt.Sprintf("%d goroutines: %s times the cycles per second of redsync.",
			workers, number(ratio(m["ops"], medians[string(redsyncLib)]["ops"]))))
	}
	f.Tables = []table{t}
	return f, nil
}
