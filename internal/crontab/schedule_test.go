package crontab

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	require.NoError(t, err)
	return loc
}

func mustParse(t testing.TB, spec string, loc *time.Location, gap Gap, fold Fold) Schedule {
	t.Helper()
	s, err := Parse(spec, loc, gap, fold)
	require.NoError(t, err)
	return s
}

// all gives the ticks in (from, to].
func all(s Schedule, from, to time.Time) []time.Time {
	var ticks []time.Time
	for next := s.Next(from); !next.IsZero() && !next.After(to); next = s.Next(next) {
		ticks = append(ticks, next)
	}
	return ticks
}

func utc(year int, month time.Month, day, hour, minute, second int) time.Time {
	return time.Date(year, month, day, hour, minute, second, 0, time.UTC)
}
