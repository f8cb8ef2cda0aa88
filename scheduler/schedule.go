package scheduler

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

const (
	// minEvery is the shortest interval, and everyUnit what all are multiples of: the register
	// counts in milliseconds.
	minEvery  = time.Second
	everyUnit = time.Millisecond
	maxEvery  = 5 * 366 * 24 * time.Hour
	// maxPassed bounds how many ticks that were slept through are counted one by one.
	maxPassed = 10_000
)

var parser = cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

var zonePrefixes = [2]string{"CRON_TZ=", "TZ="}

// parse reads a spec. now is where it must come due after at some time.
func parse(spec string, loc *time.Location, now time.Time) (cron.Schedule, error) {
	s, err := parseIn(spec, loc)
	if err == nil && s.Next(now).IsZero() {
		err = errors.New("it does not come due within five years")
	}
	if err != nil {
		return nil, fmt.Errorf("%w %q: %w; valid are, for example, %q (each day at 02:00), %q (every ten seconds), %q and %q",
			ErrInvalidSpec, spec, err, "0 2 * * *", "*/10 * * * * *", "@hourly", "@every 90s")
	}
	return s, nil
}

func parseIn(spec string, loc *time.Location) (cron.Schedule, error) {
	rest := strings.TrimSpace(spec)
	if rest == "" {
		return nil, errors.New("it is empty")
	}
	// The parser knows the prefixes, but panics where nothing follows one.
	for _, prefix := range zonePrefixes {
		zone, ok := strings.CutPrefix(rest, prefix)
		if !ok {
			continue
		}
		zone, rest, _ = strings.Cut(zone, " ")
		rest = strings.TrimSpace(rest)
		switch {
		case zone == "":
			return nil, fmt.Errorf("no time zone follows %s; write %sEurope/Berlin, for example", prefix, prefix)
		case rest == "":
			return nil, errors.New("nothing follows the time zone")
		case strings.HasPrefix(rest, zonePrefixes[0]) || strings.HasPrefix(rest, zonePrefixes[1]):
			return nil, errors.New("it has two time zones")
		}
		var err error
		if loc, err = time.LoadLocation(zone); err != nil {
			return nil, err
		}
		break
	}
	if interval, ok := strings.CutPrefix(rest, "@every"); ok {
		return parseEvery(strings.TrimSpace(interval), loc)
	}
	s, err := parser.Parse(rest)
	if err != nil {
		return nil, err
	}
	// With the zone time.Local, the parser's default, a schedule goes by that of its argument.
	return located{s, loc}, nil
}

// located is a schedule that goes by a time zone.
type located struct {
	cron.Schedule
	loc *time.Location
}

func (l located) Next(t time.Time) time.Time { return l.Schedule.Next(t.In(l.loc)) }

func parseEvery(interval string, loc *time.Location) (cron.Schedule, error) {
	d, err := time.ParseDuration(interval)
	switch {
	case err != nil:
		return nil, err
	case d < minEvery || d > maxEvery:
		return nil, fmt.Errorf("interval %v is not between %v and %v", d, minEvery, maxEvery)
	case d%everyUnit != 0:
		return nil, fmt.Errorf("interval %v is not a multiple of %v", d, everyUnit)
	}
	return every{d, loc}, nil
}

// every comes due at the multiples of an interval since the Unix epoch, so that all replicas
// agree. (The parser's own counts from when it is asked, which each replica does at a time of
// its own.)
type every struct {
	interval time.Duration
	loc      *time.Location
}

func (e every) Next(t time.Time) time.Time {
	// In milliseconds, which last for longer than the nanoseconds' 292 years.
	since, interval := t.UnixMilli(), e.interval.Milliseconds()
	past := (since%interval + interval) % interval
	return time.UnixMilli(since - past + interval).In(e.loc)
}

// newest is the last tick that is due at now, given one that is, and how many were passed over
// on the way to it: at least so many, when they are more than maxPassed.
func newest(s cron.Schedule, due, now time.Time) (tick time.Time, passed int) {
	walk := func(from time.Time, most int) (time.Time, int) {
		n := 0
		for ; n < most; n++ {
			next := s.Next(from)
			if next.IsZero() || next.After(now) {
				break
			}
			from = next
		}
		return from, n
	}
	tick, passed = walk(due, maxPassed)
	if passed < maxPassed {
		return tick, passed
	}
	// Look from ever further back, rather than at each tick of a year that was slept through.
	for back := time.Second; ; back *= 2 {
		from := now.Add(-back)
		if !from.After(tick) {
			from = tick
		}
		if last, n := walk(from, 1<<30); n > 0 || from.Equal(tick) {
			return last, passed
		}
	}
}
