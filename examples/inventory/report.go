package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// A row of the table: one figure of each way, and what it means.
type row struct {
	name  string
	of    func(r *result) string
	means string
}

func count(of func(r *result) int) func(*result) string {
	return func(r *result) string { return fmt.Sprint(of(r)) }
}

func short(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%.0f ms", d.Seconds()*1000)
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

func rows(waits string) []row {
	return []row{
		{"orders per second", func(r *result) string { return fmt.Sprintf("%.0f", r.rate()) }, "answered, while no replica was frozen"},
		{"latency, median", func(r *result) string { return short(r.latency(50)) }, "from the click to the answer"},
		{"latency, p99", func(r *result) string { return short(r.latency(99)) }, "the freeze included"},
		{"longest stop", func(r *result) string { return short(r.stop()) }, "in which nothing was sold to those who waited"},
		{"lock waits, mean", func(r *result) string { return fmt.Sprintf("%.1f", r.meanWaiting) }, waits},
		{"lock waits, most", count(func(r *result) int { return r.mostWaiting }), "at one moment"},
		{"units sold", count((*result).sold), "buyers who were answered 200"},
		{"units gone", count((*result).gone), "from the stock"},
		{"oversold", count((*result).oversold), "sold, and never there"},
		{"lost updates", count((*result).lost), "units sold that are in the stock again"},
		{"stale sales refused", count(func(r *result) int { return r.stale }), "by the gate, of the replica that was frozen"},
		{"told to come again", count((*result).comeAgain), "answers 503"},
		{"failed", count((*result).failed), "answers 500, or none"},
	}
}

// printReport prints the table of all ways, and the verdict. It reports whether the ways that are correct
// have done what they promise.
func printReport(out io.Writer, results []*result, waits string) (correct bool) {
	line := func(cells []string, last string) {
		var b strings.Builder
		fmt.Fprintf(&b, "%-20s", cells[0])
		for _, cell := range cells[1:] {
			fmt.Fprintf(&b, " %9s", cell)
		}
		_, _ = fmt.Fprintln(out, strings.TrimRight(b.String()+"   "+last, " "))
	}
	_, _ = fmt.Fprintln(out)
	head := []string{""}
	for _, r := range results {
		head = append(head, string(r.way))
	}
	line(head, "")
	for _, row := range rows(waits) {
		cells := []string{row.name}
		for _, r := range results {
			cells = append(cells, row.of(r))
		}
		line(cells, row.means)
	}
	_, _ = fmt.Fprintln(out)

	correct = true
	for _, r := range results {
		wrong := r.wrong()
		switch {
		case r.way == noGuard:
			_, _ = fmt.Fprintf(out, "%-9s %s\n", r.way, unguarded(r))
		case len(wrong) == 0:
			_, _ = fmt.Fprintf(out, "%-9s right: sold %d, gone %d, oversold 0\n", r.way, r.sold(), r.gone())
		default:
			correct = false
			_, _ = fmt.Fprintf(out, "%-9s WRONG: %s\n", r.way, strings.Join(wrong, "; "))
		}
	}
	return correct
}

// unguarded says what the race has done this time.
func unguarded(r *result) string {
	switch {
	case r.oversold() > 0:
		return fmt.Sprintf("oversold by %d, as was to be expected: %d sold, %d gone", r.oversold(), r.sold(), r.gone())
	case r.lost() > 0:
		return fmt.Sprintf("lost %d updates, as was to be expected: %d sold, %d gone", r.lost(), r.sold(), r.gone())
	}
	return "was lucky this time"
}

// story says in a line what has happened in a way.
func (r *result) story() string {
	f := r.freeze
	if f == nil {
		return "nobody was frozen"
	}
	s := fmt.Sprintf("replica %d read %d units and was frozen for %s; ", f.replica, f.left, short(f.to.Sub(f.from)))
	switch {
	case f.how == failed:
		return s + "its sale failed: " + f.text
	case r.way == rowLock:
		return s + "it had the row locked, so all waited for it"
	}
	s += fmt.Sprintf("the others sold %d; ", f.meanwhile)
	if f.how == refused {
		return s + "its late write was refused by the gate"
	}
	return s + fmt.Sprintf("its late write landed: %d left, once more", f.left-1)
}
