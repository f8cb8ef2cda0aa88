package crontab

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestASpecThatCannotBeReadIsToldWhy(t *testing.T) {
	for spec, why := range map[string]string{
		"":                                  "empty",
		" \t ":                              "empty",
		"CRON_TZ=":                          "no time zone follows CRON_TZ=",
		"TZ=":                               "no time zone follows TZ=",
		"TZ= 0 2 * * *":                     "no time zone follows TZ=",
		"TZ=UTC":                            "nothing follows the time zone",
		"TZ=UTC ":                           "nothing follows the time zone",
		"TZ=UTC TZ=UTC 0 2 * * *":           "two time zones",
		"TZ=UTC\tCRON_TZ=UTC @daily":        "two time zones",
		"CRON_TZ=Europe/Atlantis 0 2 * * *": "unknown time zone Europe/Atlantis",
		"CRON_TZ=../UTC 0 2 * * *":          "time zone",
		"cron_tz=UTC 0 2 * * *":             "second: failed to parse int from cron_tz=UTC;",
		"* * * *":                           "it has 4 fields, not five, or six",
		"* * * * * * *":                     "it has 7 fields",
		"60 * * * *":                        "minute: end of range (60) above maximum (59)",
		"* 24 * * *":                        "hour: end of range (24)",
		"61 * * * * *":                      "second: end of range (61)",
		"* * 0 * *":                         "day of month: beginning of range (0)",
		"* * 32 * *":                        "day of month: end of range (32)",
		"* * * 13 *":                        "month: end of range (13)",
		"* * * * 7":                         "day of week: end of range (7) above maximum (6): 7 (Sunday is 0)",
		"* * * mai *":                       "month: failed to parse int from mai;",
		"* * * * so":                        "day of week: failed to parse int from so;",
		"5-1 * * * *":                       "minute: beginning of range (5) beyond end of range (1)",
		"*/0 * * * *":                       "minute: step of range",
		"*/-5 * * * *":                      "minute: negative number",
		"1-2-3 * * * *":                     "minute: too many hyphens",
		"1/2/3 * * * *":                     "minute: too many slashes",
		", * * * *":                         "minute: nothing between, before or after the commas",
		"1,,2 * * * *":                      "minute: nothing between",
		"* 1, * * *":                        "hour: nothing between",
		"*-5 * * * *":                       "minute: a range cannot begin with a star",
		"?-5 * * * *":                       "minute: a range cannot begin with a star",
		"+5 * * * *":                        `minute: "+5" is no number`,
		"* * L * *":                         "day of month: failed to parse",
		"@":                                 "is none of @hourly",
		"@fortnightly":                      "@fortnightly is none of @hourly",
		"@daily 5":                          "@daily 5 is none of",
		"@Daily":                            "is none of",
		"@reboot":                           "@reboot has no meaning for a job that runs once in a fleet",
		"@every":                            "no interval follows @every",
		"@every90s":                         "is none of",
		"@every soon":                       `"soon" is no interval like 90s`,
		"@every 90":                         `"90" is no interval`,
		"@every 1h 30m":                     `"1h 30m" is no interval`,
		"@every 0s":                         "interval 0s is not between 1s and 43920h0m0s",
		"@every -5s":                        "is not between",
		"@every 999ms":                      "is not between",
		"@every 43920h1ms":                  "is not between",
		"@every 1000.5ms":                   "interval 1.0005s is not a multiple of 1ms",
		"@at":                               `"" is no time like`,
		"@at tomorrow":                      `"tomorrow" is no time like`,
		"@at 2026-02-30 00:00:00":           "is no time like",
		"@at 2026-12-24 18:00:60":           "is no time like",
		"@at 1969-12-31T23:59:59Z":          "the year of 1969-12-31T23:59:59Z is not between 1970 and 9999",
		"@at 0000-01-01 00:00:00":           "is not between 1970 and 9999",
		"@at 9999-12-31T00:00:00Z":          "is not between 1970 and 9999",
		"@at 12026-12-24T18:00:00Z":         "is no time like",
		"@at 2026-12-24T18:00:00.0001Z":     "is not in whole milliseconds",
		strings.Repeat(" ", 508) + "@daily": "longer than 512 bytes",
	} {
		s, err := Parse(spec, time.UTC, GapRunAfter, FoldOnce)
		require.ErrorContains(t, err, why, "%q", spec)
		require.ErrorContains(t, err, `valid are, for example, "0 2 * * *"`)
		require.Nil(t, s)
	}
	_, err := Parse("@daily", nil, GapRunAfter, FoldOnce)
	require.ErrorContains(t, err, "no location")
}

func TestASpecIsReadAsItIsMeant(t *testing.T) {
	now := utc(2026, 1, 5, 12, 0, 0) // a Monday, 21:00 in Tokyo
	for spec, want := range map[string]string{
		"0 2 * * *":                           "2026-01-06 02:00:00 JST",
		"  0   2 *\t* * ":                     "2026-01-06 02:00:00 JST",
		"5 0 2 * * *":                         "2026-01-06 02:00:05 JST",
		"0 2 * * TUE-thu":                     "2026-01-06 02:00:00 JST",
		"0 2 1 jan,feb ?":                     "2026-02-01 02:00:00 JST",
		"0 2 13 * fri":                        "2026-01-09 02:00:00 JST",
		"0/25 * * * *":                        "2026-01-05 21:25:00 JST",
		"CRON_TZ=America/New_York 0 2 * * *":  "2026-01-06 02:00:00 EST",
		"TZ=UTC @daily":                       "2026-01-06 00:00:00 UTC",
		"TZ=UTC\t@daily":                      "2026-01-06 00:00:00 UTC",
		"@midnight":                           "2026-01-06 00:00:00 JST",
		"@hourly":                             "2026-01-05 22:00:00 JST",
		"@weekly":                             "2026-01-11 00:00:00 JST",
		"@monthly":                            "2026-02-01 00:00:00 JST",
		"@yearly":                             "2027-01-01 00:00:00 JST",
		"@annually":                           "2027-01-01 00:00:00 JST",
		"@every 90s":                          "2026-01-05 21:01:30 JST",
		"TZ=UTC @every  1h":                   "2026-01-05 13:00:00 UTC",
		"@at 2026-12-24T18:00:00+01:00":       "2026-12-25 02:00:00 JST",
		"@at 2026-12-24 18:00:00":             "2026-12-24 18:00:00 JST",
		"@at 2026-12-24T18:00:00":             "2026-12-24 18:00:00 JST",
		"CRON_TZ=UTC @at 2026-12-24 18:00:00": "2026-12-24 18:00:00 UTC",
		strings.Repeat(" ", 506) + "@daily":   "2026-01-06 00:00:00 JST",
	} {
		s := mustParse(t, spec, zone(t, "Asia/Tokyo"), GapRunAfter, FoldOnce)
		next := s.Next(now)
		assert.Equal(t, want, next.Format("2006-01-02 15:04:05 MST"), "%q", spec)
		assert.Equal(t, next.Location(), Location(s), "%q", spec)
	}
}

func TestALocalTimeForOneRunFollowsThePolicies(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	for spec, want := range map[string]time.Time{
		"@at 2026-03-29 01:59:59.999":             utc(2026, 3, 29, 0, 59, 59).Add(999 * time.Millisecond),
		"@at 2026-03-29 02:30:00.5":               utc(2026, 3, 29, 1, 0, 0), // in the gap
		"@at 2026-03-29 03:00:00":                 utc(2026, 3, 29, 1, 0, 0),
		"@at 2026-10-25 02:30:00.5":               utc(2026, 10, 25, 0, 30, 0).Add(500 * time.Millisecond), // in the fold
		"@at 2026-10-25 03:00:00":                 utc(2026, 10, 25, 2, 0, 0),
		"@at 2026-10-25T02:30:00+01:00":           utc(2026, 10, 25, 1, 30, 0),
		"TZ=Pacific/Apia @at 2011-12-30 12:00:00": utc(2011, 12, 30, 10, 0, 0),
	} {
		for _, fold := range []Fold{FoldOnce, FoldTwice} {
			ticks := all(mustParse(t, spec, berlin, GapRunAfter, fold), utc(2000, 1, 1, 0, 0, 0), utc(2030, 1, 1, 0, 0, 0))
			require.Len(t, ticks, 1, "%q", spec)
			assert.True(t, want.Equal(ticks[0]), "%q: %v", spec, ticks[0])
		}
	}
	_, err := Parse("@at 2026-03-29 02:30:00", berlin, GapSkip, FoldOnce)
	require.ErrorContains(t, err, "there is no 2026-03-29 02:30:00 in Europe/Berlin, where clocks go forward then")
}

func TestIntervalsCountFromTheEpoch(t *testing.T) {
	s := mustParse(t, "@every 7s", zone(t, "Asia/Tokyo"), GapRunAfter, FoldOnce)
	for _, at := range []time.Time{time.Unix(0, 0), time.Unix(6, 999_999_999), time.Unix(1e9, 5), time.Unix(-3, 0), time.Unix(-7, 0), utc(2300, 1, 1, 0, 0, 0)} {
		next := s.Next(at)
		assert.Zero(t, next.Unix()%7)
		assert.Zero(t, next.Nanosecond())
		assert.True(t, next.After(at))
		assert.LessOrEqual(t, next.Sub(at), 7*time.Second)
	}
	fine := mustParse(t, "@every 1001ms", time.UTC, GapRunAfter, FoldOnce)
	assert.Equal(t, time.UnixMilli(2002).UTC(), fine.Next(time.UnixMilli(1001)))
}

func TestAOneOffComesDueOnce(t *testing.T) {
	at := utc(2026, 12, 24, 18, 0, 0)
	s := At(at)
	assert.Equal(t, at, s.Next(at.Add(-1)))
	assert.True(t, Never(s, at))
	assert.Equal(t, at.Add(time.Millisecond), At(at.Add(1)).Next(at), "ticks are whole milliseconds")
	assert.NotContains(t, At(time.Now()).Next(time.Time{}).String(), "m=", "and go by the wall clock")
	assert.Equal(t, time.UTC, Location(s))
}
