package crontab

import "time"

// horizon is within how many years a cron spec has to come due.
const horizon = 5

// local is a cron spec that goes by the clocks of a location.
type local struct {
	calendar calendar
	loc      *time.Location
	gap      Gap
	fold     Fold
}

func newLocal(c calendar, loc *time.Location, gap Gap, fold Fold) *local {
	if c.everyHour() {
		// There is nothing to make up for after a gap, and nothing to leave out in a fold.
		gap, fold = GapSkip, FoldTwice
	}
	return &local{c, loc, gap, fold}
}

func (l *local) location() *time.Location { return l.loc }

// Next walks along the stretches in which clocks are not changed, and asks in each for the first
// time on the clock.
func (l *local) Next(t time.Time) time.Time {
	t, ok := clamp(t)
	if !ok {
		return time.Time{}
	}
	from := t.Unix() + 1
	s := stretchAt(l.loc, from)
	year := min(time.Unix(from+s.offset, 0).UTC().Year()+horizon, latest.Year())
	until := time.Date(year+1, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	for ; ; s = s.next() {
		if from <= s.start && l.gap == GapRunAfter && l.inGap(s) {
			return time.Unix(s.start, 0).In(l.loc)
		}
		least := max(from, s.start) + s.offset
		if l.fold == FoldOnce {
			least = max(least, s.shown)
		}
		at, ok := l.calendar.next(least, until)
		if !ok {
			return time.Time{}
		}
		if at < s.end+s.offset {
			return time.Unix(at-s.offset, 0).In(l.loc)
		}
	}
}

// inGap reports whether ticks fall into the gap before the stretch, if there is one.
func (l *local) inGap(s stretch) bool {
	if s.shown >= s.first() {
		return false
	}
	_, ok := l.calendar.next(s.shown, s.first())
	return ok
}

// Dropped gives the ticks in (from, to], oldest first and at most limit of them, that the
// schedule would have under GapRunAfter and FoldTwice and, because of its policies, has not: for
// local times that were skipped the first moment after the gap, unless it has a tick there all
// the same, and for those that were repeated the second time.
func Dropped(s Schedule, from, to time.Time, limit int) []time.Time {
	l, ok := s.(*local)
	if !ok || l.calendar.everyHour() {
		return nil
	}
	from, ok = clamp(from)
	if to.After(latest) {
		to = latest
	}
	if !ok || !from.Before(to) {
		return nil
	}
	var dropped []time.Time
	add := func(at int64) {
		if t := time.Unix(at, 0); t.After(from) && !t.After(to) && len(dropped) < limit {
			dropped = append(dropped, t.In(l.loc))
		}
	}
	for s := stretchAt(l.loc, from.Unix()); s.start <= to.Unix() && len(dropped) < limit; s = s.next() {
		if l.gap == GapSkip && l.inGap(s) {
			if _, ok := l.calendar.next(s.first(), s.first()+1); !ok {
				add(s.start)
			}
		}
		if l.fold != FoldOnce {
			continue
		}
		again := min(s.shown, s.end+s.offset)
		for at := max(s.start, from.Unix()) + s.offset; at < again && len(dropped) < limit; at++ {
			var ok bool
			if at, ok = l.calendar.next(at, again); !ok {
				break
			}
			add(at - s.offset)
		}
	}
	return dropped
}
