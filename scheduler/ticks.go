package scheduler

import (
	"slices"
	"time"

	"github.com/quorate/quorate/internal/crontab"
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
func (t *ticks) add(tick time.Time, s crontab.Schedule) {
	if t.has(tick) {
		return
	}
	ms := tick.UnixMilli()
	i := 0
	for i < len(t.Spans) && t.Spans[i][0] < ms {
		i++
	}
	// A schedule that has no more ticks may know of this one only, and not what is between it and
	// others.
	last := s.Next(tick).IsZero()
	below := i > 0 && s.Next(time.UnixMilli(t.Spans[i-1][1])).UnixMilli() == ms &&
		(!last || s.Next(time.UnixMilli(t.Spans[i-1][1]-1)).UnixMilli() == t.Spans[i-1][1])
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
	switch {
	case len(t.Spans) <= maxSpans:
	case last: // each tick is a span, and the floor could become that of a clock that is ahead
		t.joinNearest()
	default:
		t.Floor = t.Spans[0][1]
		t.Spans = slices.Delete(t.Spans, 0, 1)
	}
}

// joinNearest makes one span of the two that have the least between them.
func (t *ticks) joinNearest() {
	nearest := 1
	for i := 2; i < len(t.Spans); i++ {
		if t.Spans[i][0]-t.Spans[i-1][1] < t.Spans[nearest][0]-t.Spans[nearest-1][1] {
			nearest = i
		}
	}
	t.Spans[nearest-1][1] = t.Spans[nearest][1]
	t.Spans = slices.Delete(t.Spans, nearest, nearest+1)
}

func (t *ticks) clone() ticks { return ticks{Floor: t.Floor, Spans: slices.Clone(t.Spans)} }

// before is the last tick in the set that is not after now, zero if there is none: at least that,
// where the set has forgotten.
func (t *ticks) before(now time.Time) time.Time {
	ms, last := now.UnixMilli(), t.Floor
	for _, x := range t.Spans {
		if x[0] <= ms {
			last = max(last, min(x[1], ms))
		}
	}
	if last == 0 {
		return time.Time{}
	}
	return time.UnixMilli(last)
}

// unsettled gives the ticks in (after, now] that are not in the set, oldest first: the newest
// limit of them.
func (t *ticks) unsettled(s crontab.Schedule, after, now time.Time, limit int) []time.Time {
	after = later(after, time.UnixMilli(t.Floor))
	var due []time.Time
	gap := func(from, to time.Time) { // the ticks in (from, to]
		from = later(from, after)
		to = earlier(to, now)
		if from.Before(to) {
			due = append(due, crontab.Last(s, from, to, limit)...)
		}
	}
	from := after
	for _, x := range t.Spans {
		gap(from, time.UnixMilli(x[0]-1))
		from = time.UnixMilli(x[1])
	}
	gap(from, now)
	return due[max(0, len(due)-limit):]
}
