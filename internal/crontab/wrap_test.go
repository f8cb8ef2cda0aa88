package crontab

import (
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// custom is a schedule of a user's.
type custom func(time.Time) time.Time

func (c custom) Next(t time.Time) time.Time { return c(t) }

func TestAScheduleThatPanicsHasNoMoreTicksAndTellsWhy(t *testing.T) {
	for _, s := range []cron.Schedule{nil, (*cron.SpecSchedule)(nil), custom(nil), custom(func(time.Time) time.Time { panic("out of days") })} {
		w := Wrap(s, time.UTC)
		require.NoError(t, Fault(w))
		assert.True(t, w.Next(time.Now()).IsZero())
		require.ErrorContains(t, Fault(w), "the schedule panicked: ")
	}
}

func TestAScheduleThatDoesNotMoveForwardHasNoMoreTicksAndTellsWhy(t *testing.T) {
	now := utc(2026, 1, 1, 0, 0, 0).Add(1700 * time.Microsecond)
	for name, next := range map[string]func(time.Time) time.Time{
		"stands still":   func(t time.Time) time.Time { return t },
		"goes backwards": func(t time.Time) time.Time { return t.Add(-time.Hour) },
		"is constant":    func(time.Time) time.Time { return utc(2025, 1, 1, 0, 0, 0) },
	} {
		w := Wrap(custom(next), time.UTC)
		assert.True(t, w.Next(now).IsZero(), name)
		require.ErrorContains(t, Fault(w), "for the first time after 2026-01-01 00:00:00.001 +0000 UTC", name)
		tick, passed := Newest(w, now.Add(-time.Hour), now)
		assert.True(t, tick.IsZero())
		assert.Zero(t, passed)
		assert.Empty(t, Last(w, now.Add(-time.Hour), now, 5))
	}
}

func TestAScheduleThatEndsIsNoFault(t *testing.T) {
	w := Wrap(custom(func(time.Time) time.Time { return time.Time{} }), time.UTC)
	assert.True(t, Never(w, time.Now()))
	far := Wrap(custom(func(time.Time) time.Time { return time.Unix(1<<50, 0) }), time.UTC)
	assert.True(t, Never(far, time.Now()))
	require.NoError(t, Fault(w))
	require.NoError(t, Fault(far))
	require.NoError(t, Fault(At(time.Now())))
}

// The microseconds of 100 ticks per ms, rounded up, are each ms once.
func TestTicksOfAnotherScheduleAreRoundedUpToMilliseconds(t *testing.T) {
	start := utc(2026, 1, 1, 0, 0, 0)
	for _, interval := range []time.Duration{10 * time.Microsecond, 1234567, time.Millisecond, 2718281} {
		w := Wrap(custom(func(t time.Time) time.Time { return t.Truncate(interval).Add(interval) }), time.UTC)
		var want []time.Time
		for raw := start.Truncate(interval); len(want) < 50; raw = raw.Add(interval) {
			up := raw.Truncate(time.Millisecond)
			if up.Before(raw) {
				up = up.Add(time.Millisecond)
			}
			if up.After(start) && (want == nil || up.After(want[len(want)-1])) {
				want = append(want, up)
			}
		}
		assert.Equal(t, want, all(w, start, want[49]))
		for at := start; at.Before(want[20]); at = at.Add(123 * time.Microsecond) {
			i := 0
			for !want[i].After(at) {
				i++
			}
			require.Equal(t, want[i], w.Next(at), "%v after %v", interval, at)
		}
	}
}

func TestAnotherScheduleIsAskedAndToldInTheLocation(t *testing.T) {
	tokyo := zone(t, "Asia/Tokyo")
	s, err := cron.ParseStandard("0 2 * * *") // in the zone of its argument
	require.NoError(t, err)
	w := Wrap(s, tokyo)
	assert.Equal(t, time.Date(2026, 1, 6, 2, 0, 0, 0, tokyo), w.Next(utc(2026, 1, 5, 12, 0, 0)))
	assert.Equal(t, tokyo, Location(w))
	assert.Equal(t, time.UTC, Location(s))
	assert.NotContains(t, w.Next(time.Now()).String(), "m=")
}
