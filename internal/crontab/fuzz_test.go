package crontab

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func FuzzParse(f *testing.F) {
	zones := []*time.Location{time.UTC, time.Local, zone(f, "Europe/Berlin"), zone(f, "Australia/Lord_Howe"), zone(f, "Pacific/Apia"), zone(f, "Africa/Casablanca")}
	for i, spec := range append([]string{
		"", "TZ=", "TZ= * * * * *", "CRON_TZ=UTC", "TZ=UTC TZ=UTC @daily", "@every 90s", "@every 1ns", "@every 99999h", "@at 2026-03-29 02:30:00",
		"@at 2026-12-24T18:00:00+01:00", "@reboot", "0 0 30 2 *", ", * * * *", "* * * * * *", "1/9223372036854775807 * * * *", "0 0 29 2 *",
	}, specs...) {
		f.Add(spec, int64(1774746000+i*1800), int64(i), byte(i))
	}
	f.Fuzz(func(t *testing.T, spec string, seconds, nanos int64, choice byte) {
		loc := zones[int(choice>>2)%len(zones)]
		s, err := Parse(spec, loc, Gap(choice&1), Fold(choice>>1&1))
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		require.NotEmpty(t, Text(s))
		at := time.Unix(seconds, nanos)
		started := time.Now()
		for range 20 {
			next := s.Next(at)
			if next.IsZero() {
				break
			}
			require.True(t, next.After(at) || at.Before(earliest), "%q: %v is not after %v", spec, next, at)
			require.Zero(t, next.Nanosecond()%int(time.Millisecond))
			require.Equal(t, Location(s), next.Location())
			// Nothing comes due in between, asked from there either.
			if between := next.Sub(at); between > 1 && between < 1<<62 {
				require.Equal(t, next, s.Next(at.Add(between/2)), "%q", spec)
				require.Equal(t, next, s.Next(next.Add(-1)), "%q", spec)
			}
			tick, passed := Newest(s, at, next)
			if !at.Before(earliest) {
				require.Equal(t, next, tick)
				require.Zero(t, passed)
			}
			at = next
		}
		Dropped(s, at.Add(-1000*time.Hour), at, 10)
		require.Less(t, time.Since(started), time.Minute, "%q", spec) // on a machine that does other things, too
	})
}
