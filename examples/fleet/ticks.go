package main

import (
	"fmt"
	"slices"
	"time"
)

// settle is how long after a replica has said that it is ready its scheduler surely runs.
const settle = 250 * time.Millisecond

// ticks are the runs of the job, held against the seconds in which it was due.
type ticks struct {
	due, once, missed int
	twice             []string
}

// countTicks counts the runs of the ticks between the moment at which the first replica was
// ready and the one at which all were told to stop. A tick may be started until the next is due,
// so the last that counts is one whose second was over. A tick outside of these that was run
// twice is as wrong as any other.
func countTicks(runs []time.Time, from, to time.Time) ticks {
	var t ticks
	times := map[int64]int{}
	for _, run := range runs {
		times[run.Unix()]++
	}
	if !from.IsZero() {
		for tick := from.Add(settle).Truncate(time.Second).Add(time.Second); !tick.Add(time.Second).After(to); tick = tick.Add(time.Second) {
			t.due++
			switch times[tick.Unix()] {
			case 0:
				t.missed++
			case 1:
				t.once++
			}
		}
	}
	for tick, n := range times {
		if n > 1 {
			t.twice = append(t.twice, fmt.Sprintf("tick %s was run %d times", clock(time.Unix(tick, 0)), n))
		}
	}
	slices.Sort(t.twice)
	return t
}

// clock shows a tick's time of day, which is its name.
func clock(t time.Time) string { return t.UTC().Format("15:04:05") }
