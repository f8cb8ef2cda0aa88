package crontab

import (
	"math"
	"slices"
	"time"
)

// MaxPassed bounds how many ticks are counted one by one.
const MaxPassed = 10_000

// Newest is the last tick in (after, now], the zero time if there is none, and how many others
// in that range were passed over: at least so many, if they are MaxPassed. It is quick for a
// range of years with a tick each second.
func Newest(s Schedule, after, now time.Time) (tick time.Time, passed int) {
	after, now = after.Round(0), now.Round(0)
	for n := 0; n <= MaxPassed; n++ {
		next, ok := within(s, after, now)
		if !ok {
			return tick, max(0, n-1)
		}
		tick, after = next, next
	}
	if newer, ok := last(s, tick, now, time.Second); ok {
		tick = newer
	}
	return tick, MaxPassed
}

// Last gives the ticks in (after, now], oldest first, and only the newest limit of them.
func Last(s Schedule, after, now time.Time, limit int) []time.Time {
	after, now = after.Round(0), now.Round(0)
	var ticks []time.Time
	step := time.Second
	for len(ticks) < limit {
		tick, ok := last(s, after, now, step)
		if !ok {
			break
		}
		if len(ticks) > 0 {
			// Most often the next is as far away again.
			step = ticks[len(ticks)-1].Sub(tick)
		}
		ticks = append(ticks, tick)
		now = tick.Add(-time.Millisecond)
	}
	slices.Reverse(ticks)
	return ticks
}

// within is the first tick in (after, now].
func within(s Schedule, after, now time.Time) (time.Time, bool) {
	next := s.Next(after)
	return next, !next.IsZero() && next.After(after) && !next.After(now)
}

// last is the last tick in (after, now]. It looks from ever further back for any tick at all,
// at first from step, and then halves the time in which there may be later ones.
func last(s Schedule, after, now time.Time, step time.Duration) (tick time.Time, found bool) {
	bound := now // no tick in (bound, now]
	for back := max(step, time.Millisecond); back < math.MaxInt64/2; back *= 2 {
		from := now.Add(-back)
		if !from.After(after) {
			break
		}
		if next, ok := within(s, from, now); ok {
			after, tick, found = next, next, true
			break
		}
		bound = from
	}
	for {
		next, ok := within(s, after, now)
		if !ok {
			return tick, found
		}
		after, tick, found = next, next, true
		if !after.Before(bound) {
			bound = now
		}
		middle := after.Add(bound.Sub(after) / 2)
		if next, ok := within(s, middle, now); ok {
			after, tick = next, next
		} else {
			bound = middle
		}
	}
}
