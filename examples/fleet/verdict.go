package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// A verdict is what came of a run.
type verdict struct {
	terms   *terms
	ticks   ticks
	units   units
	refused int      // stale writes that the gate has refused, as the replicas were told
	broken  []string // replicas that ended though nobody ended them
}

// wrong is all that must not be.
func (v *verdict) wrong() []string {
	var wrong []string
	wrong = append(wrong, v.terms.wrong()...)
	wrong = append(wrong, v.ticks.twice...)
	wrong = append(wrong, v.units.oversold()...)
	wrong = append(wrong, v.units.admittedStale()...)
	return append(wrong, v.broken...)
}

func (v *verdict) exitCode() int {
	if len(v.wrong()) > 0 {
		return 1
	}
	return 0
}

// maxListed is how much of what is wrong is listed: one late write spoils many units.
const maxListed = 12

func (v *verdict) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	line("")
	line("terms\tled %d\ttwo at once %d", len(v.terms.all), len(v.terms.wrong()))
	line("ticks\tdue %d\trun once %d\trun twice %d\tmissed %d", v.ticks.due, v.ticks.once, len(v.ticks.twice), v.ticks.missed)
	line("units\tstarted with %d\tsold %d\tleft %d\tstale writes refused %d", v.units.started(), v.units.sold(), v.units.left(), v.refused)
	line("\toversold %d\tstale writes admitted %d", len(v.units.oversold()), len(v.units.admittedStale()))
	line("")
	wrong := v.wrong()
	for i, what := range wrong {
		if i == maxListed {
			line("WRONG: … and %d more", len(wrong)-maxListed)
			break
		}
		line("WRONG: %s", what)
	}
	if len(wrong) == 0 {
		line("Nothing was doubled, oversold or admitted stale.")
	}
	_ = w.Flush()
}
