package crontab

import "time"

// A Gap says what becomes of a tick at a local time that does not exist, because clocks go
// forward.
type Gap int

const (
	// GapRunAfter lets it come due at the first moment after the gap. All ticks of a schedule
	// that fall into one gap come due there together, once.
	GapRunAfter Gap = iota
	// GapSkip leaves it out.
	GapSkip
)

// String is the word for the policy.
func (g Gap) String() string {
	if g == GapSkip {
		return "skip"
	}
	return "run-after"
}

// A Fold says what becomes of a tick at a local time that exists twice, because clocks go back.
type Fold int

const (
	// FoldOnce lets it come due the first time only.
	FoldOnce Fold = iota
	// FoldTwice lets it come due both times.
	FoldTwice
)

// String is the word for the policy.
func (f Fold) String() string {
	if f == FoldTwice {
		return "twice"
	}
	return "once"
}

// A Schedule tells when a job comes due: a set of instants in whole milliseconds, of which Next
// gives the first strictly after t, or the zero time if there is none. Those of this package are
// safe for concurrent use.
type Schedule interface {
	Next(t time.Time) time.Time
}

// Location is where the ticks of a schedule are told; UTC, if the schedule is not from this
// package.
func Location(s Schedule) *time.Location {
	if s, ok := s.(interface{ location() *time.Location }); ok {
		return s.location()
	}
	return time.UTC
}

// Never reports whether the schedule does not come due any more after now: within five years, if
// it is a cron spec.
func Never(s Schedule, now time.Time) bool { return s.Next(now).IsZero() }

// Ticks are told between the years 1 and 9999, which RFC 3339 can write. A time before that is
// taken for the start of year 1.
var (
	earliest = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
)

// clamp brings t into that range; ok is false where there is no tick after t.
func clamp(t time.Time) (_ time.Time, ok bool) {
	if t.Before(earliest) {
		return earliest, true
	}
	return t, t.Before(latest)
}

// ceil is the first whole millisecond that is not before t.
func ceil(t time.Time) time.Time {
	ms := time.UnixMilli(t.UnixMilli())
	if ms.Before(t) {
		ms = ms.Add(time.Millisecond)
	}
	return ms.In(t.Location())
}
