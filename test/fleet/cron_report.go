package main

import (
	"fmt"
	"runtime"
	"strings"
)

// cronReport is what there was to say of crontabs.
type cronReport struct {
	cronConfig
	tallies [][]tally // of each contender
}

// violations are what must not be: what others do is for the table.
func (r *cronReport) violations() []string {
	var all []string
	for i, contender := range r.contenders {
		for _, t := range r.tallies[i] {
			if contender == "quorate" {
				all = append(all, t.found...)
			}
		}
	}
	return all
}

var labels = map[string]map[string]string{
	"quorate":        {atMostOnce: "quorate, at most once", atLeastOnce: "quorate, at least once"},
	"gocron":         {atMostOnce: "gocron, lock by redsync"},
	"gocron-quorate": {atMostOnce: "gocron, lock by scheduler/gocron"},
}

// String is the report, with a table for a page in Markdown.
func (r *cronReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d replicas (processes) with wall clocks %v apart, TTL %v, runs of %v, %d redis-servers, %s/%s, %d CPUs\n\n",
		replicas, r.skew, r.ttl, r.lasts, nodes, runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	b.WriteString("| | ticks | replicas killed in a run | restarted | runs begun | ticks doubled | ticks lost | claimed and killed | passed over | runs repeated | ticks completed |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, tallies := range r.tallies {
		for _, t := range tallies {
			fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d | %d | %d | %d | %d |\n",
				labels[t.contender][t.job], t.ticks, t.kills, t.restarts, t.runs, t.doubled, t.lost, t.claimed, t.passed, t.repeated, t.completed)
		}
	}
	found := r.violations()
	if len(found) == 0 {
		b.WriteString("\nviolations: none\n")
	}
	for _, v := range found {
		b.WriteString("\nVIOLATION: " + v)
	}
	return b.String()
}
