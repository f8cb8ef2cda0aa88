package crontab

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// The oracle is dumb on purpose, and shares no code with what it is compared with, nor with
// robfig/cron. It watches a clock on the wall at each step of real time and does what the rules
// say in words.

// A moment is a step of real time and what the clock shows then.
type moment struct {
	at    int64
	shown face
	// again is set if the clock has shown the same before.
	again bool
	// skipped is what it would have shown between the step before and this one, had it not been
	// put forward.
	skipped []face
}

// A face is what a clock with a calendar shows: second, minute, hour, day of month, month, day of
// week.
type face [6]int8

func faceOf(t time.Time) face {
	return face{int8(t.Second()), int8(t.Minute()), int8(t.Hour()), int8(t.Day()), int8(t.Month()), int8(t.Weekday())}
}

// watch gives each moment from one time until just before another.
func watch(loc *time.Location, from, until time.Time, step time.Duration) []moment {
	moments := make([]moment, 0, until.Sub(from)/step)
	// The calendar of what is shown is that of UTC, as it has no changes of its own.
	wall := func(t time.Time) time.Time {
		year, month, day := t.Date()
		hour, minute, second := t.Clock()
		return time.Date(year, month, day, hour, minute, second, 0, time.UTC)
	}
	start := from.Add(-3 * 24 * 60 * step) // what was shown before counts, too
	// One for each step that a clock can show, which is less than two days off from UTC.
	seen := make([]bool, until.Sub(start)/step+4*24*time.Hour/step)
	place := func(shown time.Time) int { return int((shown.Sub(start) + 2*24*time.Hour) / step) }
	var before time.Time
	for t := start; t.Before(until); t = t.Add(step) {
		now := wall(t.In(loc))
		m := moment{at: t.Unix(), shown: faceOf(now), again: seen[place(now)]}
		seen[place(now)] = true
		if !before.IsZero() {
			for s := before.Add(step); s.Before(now); s = s.Add(step) {
				m.skipped = append(m.skipped, faceOf(s))
			}
		}
		before = now
		if !t.Before(from) {
			moments = append(moments, m)
		}
	}
	return moments
}

// A pattern is a spec with six fields, each a list of what it allows.
type pattern struct {
	allowed  [6][60]bool
	anyDom   bool
	anyDow   bool
	allHours bool
}

func patternOf(spec string) pattern {
	fields := strings.Fields(spec)
	if len(fields) == 5 {
		fields = append([]string{"0"}, fields...)
	}
	least := [6]int{0, 0, 0, 1, 1, 0}
	most := [6]int{59, 59, 23, 31, 12, 6}
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			panic(err)
		}
		return n
	}
	p := pattern{anyDom: fields[3] == "*", anyDow: fields[5] == "*", allHours: true}
	for i, field := range fields {
		for _, item := range strings.Split(field, ",") {
			numbers, step, stepped := strings.Cut(item, "/")
			from, to, ranged := strings.Cut(numbers, "-")
			by := 1
			if stepped {
				by = number(step)
			}
			low, high := least[i], most[i]
			if numbers != "*" {
				low = number(from)
				switch {
				case ranged:
					high = number(to)
				case !stepped:
					high = low
				}
			}
			for n := low; n <= high; n += by {
				p.allowed[i][n] = true
			}
		}
	}
	for _, allowed := range p.allowed[2][:24] {
		p.allHours = p.allHours && allowed
	}
	return p
}

func (p *pattern) matches(f face) bool {
	for _, i := range [4]int{1, 2, 0, 4} {
		if !p.allowed[i][f[i]] {
			return false
		}
	}
	dom, dow := p.allowed[3][f[3]], p.allowed[5][f[5]]
	if p.anyDom || p.anyDow {
		return dom && dow
	}
	return dom || dow
}

// concerned are the moments at which a job may come due under some policy.
func (p *pattern) concerned(moments []moment) []moment {
	var some []moment
	for i := range moments {
		m := &moments[i]
		if p.matches(m.shown) || slices.ContainsFunc(m.skipped, p.matches) {
			some = append(some, *m)
		}
	}
	return some
}

// ticks are the moments at which a job comes due, in Unix seconds.
func (p *pattern) ticks(moments []moment, gap Gap, fold Fold) []int64 {
	var ticks []int64
	for _, m := range moments {
		due := p.matches(m.shown)
		if m.again && fold == FoldOnce && !p.allHours {
			due = false
		}
		if gap == GapRunAfter && !p.allHours {
			due = due || slices.ContainsFunc(m.skipped, p.matches)
		}
		if due {
			ticks = append(ticks, m.at)
		}
	}
	return ticks
}
