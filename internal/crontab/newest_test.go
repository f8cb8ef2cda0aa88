package crontab

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Found the dumb way: by walking all ticks.
func TestNewestAndLastAreTheEndOfAllTicks(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	berlin := zone(t, "Europe/Berlin")
	for _, spec := range []string{"* * * * * *", "*/7 3-5 * * * *", "* * 9 1 1 *", "@every 7s", "0 2 * * *", "*/5 2 * * *", "0 0 1 1 *", "0 0 30 2 *", "@at 2001-01-01 00:00:00"} {
		s := mustParse(t, spec, berlin, GapRunAfter, FoldTwice)
		for i := range 40 {
			after := time.Unix(rnd.Int64N(1e9), rnd.Int64N(2)*500)
			if i%4 == 0 {
				after = s.Next(after)
			}
			now := after.Add(time.Duration(rnd.Int64N([]int64{10, 20_000, 3e7}[i%3]) * int64(time.Second)))
			if i%3 == 2 && (spec == "* * * * * *" || spec == "@every 7s" || spec == "*/7 3-5 * * * *") {
				now = after.Add(time.Duration(i) * time.Hour)
			}
			if i%5 == 0 && !s.Next(after).IsZero() {
				now = s.Next(now)
			}
			want := all(s, after, now)
			tick, passed := Newest(s, after, now)
			if len(want) == 0 {
				require.True(t, tick.IsZero(), "%q from %v to %v", spec, after, now)
				require.Zero(t, passed)
				require.Empty(t, Last(s, after, now, 5))
				continue
			}
			require.Equal(t, want[len(want)-1], tick, "%q from %v to %v", spec, after, now)
			require.Equal(t, min(len(want)-1, MaxPassed), passed)
			for _, limit := range []int{0, 1, 3, 100} {
				require.Equal(t, append([]time.Time(nil), want[max(0, len(want)-limit):]...), Last(s, after, now, limit), "%q from %v to %v", spec, after, now)
			}
		}
	}
}

func TestTicksArePassedOverUpToABound(t *testing.T) {
	s := mustParse(t, "@every 1s", time.UTC, GapRunAfter, FoldOnce)
	for _, test := range []struct{ ticks, passed int64 }{{0, 0}, {1, 0}, {2, 1}, {MaxPassed, MaxPassed - 1}, {MaxPassed + 1, MaxPassed}, {MaxPassed + 2, MaxPassed}} {
		tick, passed := Newest(s, time.Unix(1e9, 0), time.Unix(1e9+test.ticks, 0))
		assert.EqualValues(t, test.passed, passed)
		assert.Equal(t, test.ticks == 0, tick.IsZero())
		if test.ticks > 0 {
			assert.Equal(t, 1e9+test.ticks, tick.Unix())
		}
	}
}

func TestTicksMayBeAMillisecondApart(t *testing.T) {
	s := Wrap(custom(func(t time.Time) time.Time { return t.Truncate(time.Millisecond).Add(time.Millisecond) }), time.UTC)
	now := utc(2026, 1, 1, 0, 0, 0)
	assert.Equal(t, []time.Time{now.Add(-2 * time.Millisecond), now.Add(-time.Millisecond), now}, Last(s, now.Add(-time.Hour), now, 3))
}

// asked counts how often a schedule is asked.
type asked struct {
	Schedule
	times int
}

func (a *asked) Next(t time.Time) time.Time {
	a.times++
	return a.Schedule.Next(t)
}

func TestYearsOfTicksAreNotWalked(t *testing.T) {
	now := time.Date(2026, 7, 1, 0, 0, 0, 5, time.UTC)
	for spec, want := range map[string]time.Time{
		"* * * * * *":   utc(2026, 7, 1, 0, 0, 0),
		"* * * * 1 *":   utc(2026, 1, 31, 23, 59, 59), // 2.7 million ticks, half a year ago
		"* * * 29 2 *":  utc(2024, 2, 29, 23, 59, 59),
		"@every 1s":     utc(2026, 7, 1, 0, 0, 0),
		"@every 1h0.5s": time.UnixMilli(now.UnixMilli() / 3600500 * 3600500).UTC(),
	} {
		s := &asked{Schedule: mustParse(t, spec, time.UTC, GapRunAfter, FoldOnce)}
		for _, after := range []time.Time{{}, time.Unix(-1<<50, 0), time.Unix(0, 0), utc(2020, 1, 1, 0, 0, 0)} {
			tick, passed := Newest(s, after, now)
			assert.Equal(t, want, tick, spec)
			assert.Equal(t, MaxPassed, passed, spec)
			assert.Less(t, s.times, MaxPassed+200, spec)
			s.times = 0
			ticks := Last(s, after, now, 50)
			assert.Len(t, ticks, 50)
			assert.Equal(t, want, ticks[49])
			assert.Less(t, s.times, 50*5+200, spec)
			s.times = 0
		}
	}
}

// Such a schedule breaks its contract, but the search ends.
func TestASearchEndsForAScheduleThatCountsFromWhenItIsAsked(t *testing.T) {
	for _, delay := range []time.Duration{time.Millisecond, time.Second, 90 * time.Minute} {
		w := &asked{Schedule: Wrap(custom(func(t time.Time) time.Time { return t.Add(delay) }), time.UTC)}
		now := utc(2026, 1, 1, 0, 0, 0)
		tick, _ := Newest(w, utc(2020, 1, 1, 0, 0, 0), now)
		assert.False(t, tick.After(now))
		assert.LessOrEqual(t, now.Sub(tick), 2*delay)
		assert.Len(t, Last(w, utc(2020, 1, 1, 0, 0, 0), now, 10), 10)
		assert.Less(t, w.times, 2*MaxPassed)
	}
}

func TestTicksAreComparedByTheWallClock(t *testing.T) {
	now := time.Now()
	require.Contains(t, now.String(), "m=")
	s := mustParse(t, "* * * * * *", time.UTC, GapRunAfter, FoldOnce)
	assert.NotContains(t, s.Next(now).String(), "m=")
	tick, _ := Newest(s, now.Add(-time.Minute), now)
	assert.NotContains(t, tick.String(), "m=")
	assert.Equal(t, now.Unix(), tick.Unix())
}
