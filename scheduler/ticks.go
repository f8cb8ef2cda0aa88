package scheduler

import (
	"slices"
	"time"

	"github.com/robfig/cron/v3"
)

// maxSpans bounds the register. One span is usual; each gap adds one: ticks that nobody could
// start, or a replica whose clock is ahead.
const maxSpans = 16

// A span is a number of consecutive ticks, from the first to the last, in Unix milliseconds.
type span [2]int64

// ticks is a set of ticks, which forgets by growing: what it does not know any more it claims
// to contain. So it errs to the side on which a tick is not run twice.
//
// It is a set, and not just the highest tick, so that one replica whose clock is a year ahead
// does not keep all the others from running anything for a year.
type ticks struct {
	Floor int64  `json:"floor,omitempty"` // contains everything up to here
	Spans []span `json:"spans,omitempty"` // in order, disjoint, above Floor
}

func (t *ticks) has(tick time.Time) bool {
	ms := tick.UnixMilli()
	return ms <= t.Floor || slices.ContainsFunc(t.Spans, func(s span) bool { return s[0] <= ms && ms <= s[1] })
}

// add puts a tick of the schedule into the set.
func (t *ticks) add(tick time.Time, s cron.Schedule) {
	if t.has(tick) {
		return
	}
	ms := tick.UnixMilli()
	i := 0
	for i < len(t.Spans) && t.Spans[i][0] < ms {
		i++
	}
	below := i > 0 && s.Next(time.UnixMilli(t.Spans[i-1][1])).UnixMilli() == ms
	above := i < len(t.Spans) && s.Next(tick).UnixMilli() == t.Spans[i][0]
	switch {
	case below && above:
		t.Spans[i-1][1] = t.Spans[i][1]
		t.Spans = slices.Delete(t.Spans, i, i+1)
	case below:
		t.Spans[i-1][1] = ms
	case above:
		t.Spans[i][0] = ms
	default:
		t.Spans = slices.Insert(t.Spans, i, span{ms, ms})
	}
	if len(t.Spans) > maxSpans {
		t.Floor = t.Spans[0][1]
		t.Spans = slices.Delete(t.Spans, 0, 1)
	}
}

func (t *ticks) clone() ticks { return ticks{Floor: t.Floor, Spans: slices.Clone(t.Spans)} }
