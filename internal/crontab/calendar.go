package crontab

import (
	"math/bits"
	"time"

	"github.com/robfig/cron/v3"
)

// A calendar is what the fields of a cron spec say: sets of numbers, one bit for each. It knows
// nothing of time zones. Its times are seconds "on the clock": what a local clock shows, counted
// as if that were UTC.
type calendar struct {
	second, minute, hour, dom, month, dow uint64
	// either is set when a day need match only one of dom and dow.
	either bool
}

const (
	allSeconds = 1<<60 - 1
	allMinutes = 1<<60 - 1
	allHours   = 1<<24 - 1
	allDoms    = 1<<32 - 2
	allMonths  = 1<<13 - 2
	allDows    = 1<<7 - 1
	// starBit is where robfig/cron notes that a field was a star.
	starBit = 1 << 63

	daySeconds = 24 * 60 * 60
)

// newCalendar brings a spec as robfig/cron read it into the one form that all specs with the
// same meaning share.
func newCalendar(s *cron.SpecSchedule) calendar {
	c := calendar{
		second: s.Second & allSeconds, minute: s.Minute & allMinutes, hour: s.Hour & allHours,
		dom: s.Dom & allDoms, month: s.Month & allMonths, dow: s.Dow & allDows,
		either: (s.Dom|s.Dow)&starBit == 0,
	}
	// One of two fields that allows each day leaves nothing to the other.
	if c.either && (c.dom == allDoms || c.dow == allDows) {
		c.dom, c.dow, c.either = allDoms, allDows, false
	}
	return c
}

// everyHour reports whether no hour is left out.
func (c *calendar) everyHour() bool { return c.hour == allHours }

// next is the first time that is at or after from, and before until.
func (c *calendar) next(from, until int64) (at int64, ok bool) {
	t := time.Unix(from, 0).UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	if c.days(year, month)>>day&1 != 0 {
		if ofDay, ok := c.clock(hour, minute, second); ok {
			at = from - clockSeconds(hour, minute, second) + ofDay
			return at, at < until
		}
	}
	first, ok := c.clock(0, 0, 0)
	if !ok {
		return 0, false
	}
	lastYear, lastMonth, _ := time.Unix(until, 0).UTC().Date()
	for day++; year < lastYear || year == lastYear && month <= lastMonth; day = 1 {
		if d, ok := atLeast(c.days(year, month), day); ok {
			at = time.Date(year, month, d, 0, 0, 0, 0, time.UTC).Unix() + first
			return at, at < until
		}
		if month++; month > time.December {
			year, month = year+1, time.January
		}
	}
	return 0, false
}

// days are the days of a month that match, one bit for each.
func (c *calendar) days(year int, month time.Month) uint64 {
	if c.month>>month&1 == 0 {
		return 0
	}
	weekday := int(time.Date(year, month, 1, 0, 0, 0, 0, time.UTC).Weekday())
	length := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
	// The week, turned so that it begins with the weekday of the 1st, five times in a row.
	week := (c.dow>>weekday | c.dow<<(7-weekday)) & allDows
	dows := week * (1 | 1<<7 | 1<<14 | 1<<21 | 1<<28) << 1
	match := c.dom & dows
	if c.either {
		match = c.dom | dows
	}
	return match & (1<<(length+1) - 2)
}

// clock is the first time of day, in seconds, that is not before the one given.
func (c *calendar) clock(hour, minute, second int) (int64, bool) {
	if c.hour>>hour&1 != 0 {
		if c.minute>>minute&1 != 0 {
			if s, ok := atLeast(c.second, second); ok {
				return clockSeconds(hour, minute, s), true
			}
		}
		if m, ok := atLeast(c.minute, minute+1); ok {
			s, ok := atLeast(c.second, 0)
			return clockSeconds(hour, m, s), ok
		}
	}
	h, okHour := atLeast(c.hour, hour+1)
	m, okMinute := atLeast(c.minute, 0)
	s, okSecond := atLeast(c.second, 0)
	return clockSeconds(h, m, s), okHour && okMinute && okSecond
}

func clockSeconds(hour, minute, second int) int64 {
	return int64(hour)*3600 + int64(minute)*60 + int64(second)
}

// atLeast is the first member of the set that is not below n.
func atLeast(set uint64, n int) (int, bool) {
	set = set >> n << n
	return bits.TrailingZeros64(set), set != 0
}
