package crontab

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type written struct {
	spec string
	loc  *time.Location
	gap  Gap
	fold Fold
}

func (w written) text(t *testing.T) string {
	t.Helper()
	text, err := Canonical(w.spec, w.loc, w.gap, w.fold)
	require.NoError(t, err)
	return text
}

func TestSpecsWithTheSameMeaningHaveTheSameText(t *testing.T) {
	berlin, tokyo := zone(t, "Europe/Berlin"), zone(t, "Asia/Tokyo")
	utc := time.UTC
	for _, same := range [][]written{
		{{"0 2 * * *", berlin, 0, 0}, {" 0  2 * * *", berlin, 0, 0}, {"0 0 2 * * *", berlin, 0, 0}, {"CRON_TZ=Europe/Berlin 0 2 ? * ?", tokyo, 0, 0},
			{"TZ=Europe/Berlin 0,0 2-2 */1 1-12 *", utc, 0, 0}, {"TZ=Arctic/Longyearbyen 0 2 * * *", utc, 0, 0}, {"0 2 1-31 * mon", berlin, 0, 0}},
		{{"*/15 9-17 * * mon-fri", berlin, 0, 0}, {"0,15,30,45 9,10,11,12,13,14,15,16,17 * * 1,2,3,4,5", berlin, 0, 0}},
		{{"@hourly", berlin, 0, 0}, {"0 * * * *", berlin, GapSkip, FoldTwice}, {"0 0-23 * * *", berlin, GapSkip, FoldOnce}},
		{{"@daily", utc, 0, 0}, {"@midnight", utc, GapSkip, FoldTwice}, {"0 0 * * *", time.FixedZone("Z", 0), 0, 0}, {"TZ=Etc/UTC @daily", berlin, 0, 0}},
		{{"@daily", tokyo, 0, 0}, {"@daily", time.FixedZone("", 9*3600), 0, 0}},
		{{"@every 90s", berlin, 0, 0}, {"@every 1m30s", utc, GapSkip, FoldTwice}},
		{{"@at 2026-12-24T18:00:00+01:00", utc, 0, 0}, {"@at 2026-12-24 18:00:00", berlin, 0, FoldTwice}, {"@at 2026-12-24T17:00:00.000Z", tokyo, 0, 0}},
	} {
		for _, w := range same {
			assert.Equal(t, same[0].text(t), w.text(t), "%q and %q", same[0].spec, w.spec)
		}
	}
}

func TestSpecsWithAnotherMeaningHaveAnotherText(t *testing.T) {
	berlin, utc := zone(t, "Europe/Berlin"), time.UTC
	seen := map[string]written{}
	for _, w := range []written{
		{"0 2 * * *", berlin, 0, 0}, {"0 2 * * *", berlin, GapSkip, 0}, {"0 2 * * *", berlin, 0, FoldTwice}, {"0 2 * * *", berlin, GapSkip, FoldTwice},
		{"0 2 * * *", utc, 0, 0}, {"0 2 * * *", zone(t, "Europe/London"), 0, 0}, {"0 2 * * *", time.FixedZone("CET", 3600), 0, 0}, {"0 2 * * *", time.FixedZone("", 1), 0, 0},
		{"1 0 2 * * *", berlin, 0, 0}, {"1 2 * * *", berlin, 0, 0}, {"0 3 * * *", berlin, 0, 0}, {"0 2 1 * *", berlin, 0, 0}, {"0 2 * 1 *", berlin, 0, 0}, {"0 2 * * 1", berlin, 0, 0},
		{"0 2 1 * 1", berlin, 0, 0}, {"0 2 1-30 * 1", berlin, 0, 0}, {"0 2 1-30 * *", berlin, 0, 0},
		{"@every 24h", utc, 0, 0}, {"@every 90s", utc, 0, 0}, {"@at 2026-12-24T18:00:00Z", utc, 0, 0}, {"@at 2026-12-24T18:00:00.001Z", utc, 0, 0},
	} {
		text := w.text(t)
		assert.NotContains(t, seen, text, "%q", w.spec)
		seen[text] = w
	}
}

// Two builds of the time zone database list different changes that are none.
func TestZonesAreComparedByWhatTheirClocksShow(t *testing.T) {
	at := utc(2026, 6, 1, 12, 0, 0)
	text := func(changes ...change) string {
		return written{"0 2 * * *", madeUp(t, changes...), 0, 0}.text(t)
	}
	assert.Equal(t, text(change{at, 3600}), text(change{at, 3600}, change{at.Add(time.Hour), 3600}))
	assert.Equal(t, text(change{at, 3600}), text(change{utc(1999, 1, 1, 0, 0, 0), 7200}, change{utc(2000, 1, 1, 0, 0, 0), 0}, change{at, 3600}), "and not by the past")
	assert.NotEqual(t, text(change{at, 3600}), text(change{at.Add(time.Hour), 3600}))
	assert.Equal(t, written{"0 2 * * *", time.UTC, 0, 0}.text(t), text(change{at, 0}))
}

// What is stored and compared between versions is not to change.
func TestTextsStayWhatTheyAre(t *testing.T) {
	assert.Equal(t, "0 0,5,10-12 2 * * 1-5 in +00:00:00", written{"0,5,10-12 2 * * mon-fri", time.UTC, 0, 0}.text(t))
	assert.Regexp(t, `^0 0 2 \* \* \* in zone [0-9a-f]{16}, gap run-after, fold once$`, written{"0 2 * * *", zone(t, "Europe/Berlin"), 0, 0}.text(t))
	assert.Regexp(t, `^0 0 2 \* \* \* in zone [0-9a-f]{16}, gap skip, fold twice$`, written{"0 2 * * *", zone(t, "Europe/Berlin"), GapSkip, FoldTwice}.text(t))
	assert.Regexp(t, `^0 0 \* \* \* \* in zone [0-9a-f]{16}$`, written{"@hourly", zone(t, "Europe/Berlin"), 0, 0}.text(t))
	assert.Equal(t, "@every 1m30s", written{"@every 90s", time.UTC, 0, 0}.text(t))
	assert.Equal(t, "@at 2026-12-24T18:00:00.000Z", written{"@at 2026-12-24T18:00:00Z", time.UTC, 0, 0}.text(t))
	assert.Empty(t, Text(Wrap(nil, time.UTC)))
	_, err := Canonical("", time.UTC, 0, 0)
	require.Error(t, err)
}
