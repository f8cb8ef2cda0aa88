package crontab

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/robfig/cron/v3"
)

// maxSpec is how long a spec may be, in bytes.
const maxSpec = 512

var parser = cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

var zonePrefixes = [2]string{"CRON_TZ=", "TZ="}

// Parse reads a spec, behind CRON_TZ= or TZ= and a time zone, which then takes the place of loc,
// or on its own:
//
//	0 2 * * mon-fri              minute, hour, day of month, month, day of week
//	*/10 0 2 * * *               the same, with seconds first
//	@hourly                      or @daily, @midnight, @weekly, @monthly, @yearly, @annually
//	@every 90s                   at the multiples since the Unix epoch
//	@at 2026-12-24T18:00:00Z     once
//	@at 2026-12-24 18:00:00      once, by the clocks of the location
func Parse(spec string, loc *time.Location, gap Gap, fold Fold) (Schedule, error) {
	s, err := parse(spec, loc, gap, fold)
	if err != nil {
		return nil, fmt.Errorf("%w; valid are, for example, %q (each day at 02:00), %q (every ten seconds), %q, %q and %q",
			err, "0 2 * * *", "*/10 * * * * *", "@hourly", "@every 90s", "@at 2026-12-24T18:00:00Z")
	}
	return s, nil
}

func parse(spec string, loc *time.Location, gap Gap, fold Fold) (Schedule, error) {
	if len(spec) > maxSpec {
		return nil, fmt.Errorf("it is longer than %d bytes", maxSpec)
	}
	rest, loc, err := parseZone(strings.TrimSpace(spec), loc)
	if err != nil {
		return nil, err
	}
	switch head, tail := cutSpace(rest); head {
	case "@every":
		return parseEvery(tail, loc)
	case "@at":
		return parseAt(tail, loc, gap)
	case "@reboot":
		return nil, errors.New("@reboot has no meaning for a job that runs once in a fleet; call the function when the process starts")
	}
	c, err := parseCalendar(rest)
	if err != nil {
		return nil, err
	}
	return newLocal(c, loc, gap, fold), nil
}

// parseZone takes the time zone off a spec. The parser of robfig/cron knows it as well, but
// panics where nothing follows.
func parseZone(spec string, loc *time.Location) (rest string, _ *time.Location, err error) {
	if spec == "" {
		return "", nil, errors.New("it is empty")
	}
	for _, prefix := range zonePrefixes {
		zone, ok := strings.CutPrefix(spec, prefix)
		if !ok {
			continue
		}
		zone, rest = cutSpace(zone)
		switch {
		case zone == "":
			return "", nil, fmt.Errorf("no time zone follows %s; write %sEurope/Berlin, for example", prefix, prefix)
		case rest == "":
			return "", nil, errors.New("nothing follows the time zone")
		case strings.HasPrefix(rest, zonePrefixes[0]) || strings.HasPrefix(rest, zonePrefixes[1]):
			return "", nil, errors.New("it has two time zones")
		}
		if loc, err = time.LoadLocation(zone); err != nil {
			return "", nil, fmt.Errorf("time zone %q: %w", zone, err)
		}
		return rest, loc, nil
	}
	if loc == nil {
		return "", nil, errors.New("there is no location, such as time.UTC, to read it in")
	}
	return spec, loc, nil
}

// cutSpace splits behind the first word.
func cutSpace(s string) (head, tail string) {
	i := strings.IndexFunc(s, unicode.IsSpace)
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimSpace(s[i:])
}

func parseEvery(interval string, loc *time.Location) (Schedule, error) {
	d, err := time.ParseDuration(interval)
	switch {
	case interval == "":
		return nil, errors.New("no interval follows @every")
	case err != nil:
		return nil, fmt.Errorf("%q is no interval like 90s, 15m or 1h30m", interval)
	case d < minEvery || d > maxEvery:
		return nil, fmt.Errorf("interval %v is not between %v and %v", d, minEvery, maxEvery)
	case d%time.Millisecond != 0:
		return nil, fmt.Errorf("interval %v is not a multiple of %v", d, time.Millisecond)
	}
	return every{d, loc}, nil
}

// parseAt reads a time that has an offset from UTC, or goes by the clocks of loc. There, one
// that exists twice is the first of the two under either policy, as it is to come due once.
func parseAt(at string, loc *time.Location, gap Gap) (Schedule, error) {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		for _, layout := range [2]string{time.DateTime, "2006-01-02T15:04:05"} {
			if t, err = time.Parse(layout, at); err == nil {
				break
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%q is no time like 2026-12-24T18:00:00Z, 2026-12-24T18:00:00+01:00 or 2026-12-24 18:00:00", at)
		}
		seconds, exists := resolve(loc, t.Unix())
		if !exists && gap == GapSkip {
			return nil, fmt.Errorf("there is no %s in %v, where clocks go forward then", t.Format(time.DateTime), loc)
		}
		fraction := time.Duration(t.Nanosecond())
		if !exists {
			fraction = 0
		}
		t = time.Unix(seconds, 0).Add(fraction)
	}
	switch t = t.In(loc); {
	case t.UTC().Year() < 1970 || !t.Before(latest):
		return nil, fmt.Errorf("the year of %s is not between 1970 and %d", at, latest.Year())
	case t.Nanosecond()%int(time.Millisecond) != 0:
		return nil, fmt.Errorf("time %s is not in whole milliseconds", at)
	}
	return At(t), nil
}

var fieldNames = [6]string{"second", "minute", "hour", "day of month", "month", "day of week"}

// parseCalendar reads the fields, or a descriptor that stands for them.
func parseCalendar(spec string) (calendar, error) {
	if strings.HasPrefix(spec, "@") {
		s, err := parser.Parse(spec)
		if err != nil {
			return calendar{}, fmt.Errorf("%s is none of @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually, @every and @at", spec)
		}
		return newCalendar(s.(*cron.SpecSchedule)), nil
	}
	fields := strings.Fields(spec)
	if len(fields) < 5 || len(fields) > 6 {
		return calendar{}, fmt.Errorf("it has %d fields, not five, or six with seconds", len(fields))
	}
	names := fieldNames[6-len(fields):]
	for i, field := range fields {
		if err := parseField(i+6-len(fields), field); err != nil {
			return calendar{}, fmt.Errorf("%s: %w", names[i], err)
		}
	}
	s, err := parser.Parse(spec)
	if err != nil {
		return calendar{}, err
	}
	return newCalendar(s.(*cron.SpecSchedule)), nil
}

// parseField looks at one field on its own, so that an error can tell which it is, and for what
// the parser lets pass though nobody can have meant it: nothing between commas, and a range that
// begins with a star, of which it does not read the end.
func parseField(place int, field string) error {
	for item := range strings.SplitSeq(field, ",") {
		switch {
		case item == "":
			return fmt.Errorf("nothing between, before or after the commas of %q", field)
		case strings.HasPrefix(item, "*-") || strings.HasPrefix(item, "?-"):
			return fmt.Errorf("a range cannot begin with a star: %q", item)
		case strings.ContainsRune(item, '+'):
			return fmt.Errorf("%q is no number", item)
		}
	}
	alone := [6]string{"0", "0", "0", "*", "*", "*"}
	alone[place] = field
	if _, err := parser.Parse(strings.Join(alone[:], " ")); err != nil {
		// What strconv says comes after what the parser says, and is the same again.
		text, _, _ := strings.Cut(err.Error(), ": strconv.")
		if place == 5 && strings.ContainsRune(field, '7') {
			text += " (Sunday is 0)"
		}
		return errors.New(text)
	}
	return nil
}
