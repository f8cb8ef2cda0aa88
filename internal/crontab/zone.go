package crontab

import (
	"math"
	"time"
)

// memory is how far back a clock change can matter. In no zone were clocks ever put forward or
// back by more than a day.
const memory = 48 * 60 * 60

// A stretch is real time, in Unix seconds from start until just before end, in which clocks in a
// location are not changed: they show the time plus offset.
type stretch struct {
	loc                *time.Location
	start, end, offset int64
	// shown is the latest time that the clocks have shown before start. Past a gap it is less
	// than what they show at start, past a fold it is more.
	shown int64
}

// stretchAt is the stretch that has at in it. It may begin less far back than clocks have not
// been changed, but then by far enough that all before is of no matter.
func stretchAt(loc *time.Location, at int64) stretch {
	s := stretch{loc: loc, start: at - memory}
	s.look()
	s.shown = s.first()
	for s.end <= at {
		s = s.next()
	}
	return s
}

// next is the stretch that follows. Clocks need not differ between the two.
func (s stretch) next() stretch {
	next := stretch{loc: s.loc, start: s.end, shown: max(s.shown, s.end+s.offset)}
	next.look()
	return next
}

// first is what clocks show when the stretch begins.
func (s stretch) first() int64 { return s.start + s.offset }

// look finds offset and end for start.
func (s *stretch) look() {
	t := time.Unix(s.start, 0).In(s.loc)
	_, offset := t.Zone()
	s.offset = int64(offset)
	// Of these bounds only the end is of use: the other may lie before the last change that the
	// time zone's file lists, if the file goes on with a rule for all years to come.
	_, end := t.ZoneBounds()
	switch {
	case end.IsZero():
		s.end = math.MaxInt64 / 4
	case end.After(t):
		s.end = end.Unix()
	default:
		// By such a rule the time after the last change of a year is told to last for the first
		// 365 days of that year, which in the last hours of a leap year are over.
		s.end = time.Date(t.UTC().Year()+1, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	}
}

// resolve is the first moment at which clocks in loc show the given time or have gone past it,
// and whether they show it then.
func resolve(loc *time.Location, shown int64) (at int64, exists bool) {
	for s := stretchAt(loc, shown-memory); ; s = s.next() {
		switch {
		case shown < s.first():
			return s.start, false
		case shown < s.end+s.offset:
			return shown - s.offset, true
		}
	}
}
