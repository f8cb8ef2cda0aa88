package crontab

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	policies = [...]struct {
		gap  Gap
		fold Fold
	}{{GapRunAfter, FoldOnce}, {GapRunAfter, FoldTwice}, {GapSkip, FoldOnce}, {GapSkip, FoldTwice}}

	specs = []string{
		"0 * * * *", "30 * * * *", "*/10 * * * *",
		"0 0 * * *", "30 0 * * *", "59 0 * * *", "15 1 * * *", "0 2 * * *", "15 2 * * *", "59 2 * * *", "0 3 * * *",
		"30 12 * * *", "30 22 * * *", "30 23 * * *", "0,30 23,0 * * *",
		"*/5 2 * * *", "*/5 1-3 * * *", "0 */2 * * *", "30 1,13 * * *", "*/30 0-22 * * *", "0 2,3 * * *",
		"30 2 * * 0", "0 9 * * 1", "30 0 * * 0", "0 0 * * 5",
		"0 2 29 * *", "30 2 1,15,30 * 0", "30 2 */2 3,10 0", "0 0 1 */3 *",
	}

	// Stretches of time with clock changes that are all different.
	spans = []struct {
		zone      string
		from      time.Time
		days      int
		unchanged bool
		why       string
	}{
		{"Europe/Berlin", utc(2026, 1, 1, 0, 0, 0), 365, false, "an hour at 02:00 and 03:00"},
		{"America/New_York", utc(2026, 1, 1, 0, 0, 0), 365, false, "an hour at 02:00, back to 01:00"},
		{"Australia/Lord_Howe", utc(2026, 1, 1, 0, 0, 0), 365, false, "half an hour, in the south"},
		{"Europe/Berlin", utc(2026, 3, 24, 0, 0, 0), 9, false, "the first of them, closely"},
		{"Europe/Berlin", utc(2026, 10, 20, 0, 0, 0), 9, false, "the second"},
		{"Australia/Lord_Howe", utc(2026, 4, 1, 0, 0, 0), 9, false, "the first of them, closely"},
		{"Australia/Lord_Howe", utc(2026, 9, 29, 0, 0, 0), 9, false, "the second"},
		{"Europe/Berlin", utc(2028, 12, 27, 0, 0, 0), 9, true, "the end of a leap year, which the time package gets wrong"},
		{"America/Santiago", utc(2026, 4, 1, 0, 0, 0), 9, false, "a fold at midnight"},
		{"America/Santiago", utc(2026, 9, 1, 0, 0, 0), 9, false, "a gap at midnight"},
		{"Africa/Cairo", utc(2026, 4, 20, 0, 0, 0), 9, false, "a gap at midnight"},
		{"Africa/Cairo", utc(2026, 10, 26, 0, 0, 0), 9, false, "a fold at midnight"},
		{"Asia/Beirut", utc(2022, 3, 23, 0, 0, 0), 9, false, "a gap at midnight"},
		{"America/Havana", utc(2026, 10, 28, 0, 0, 0), 9, false, "a fold back to midnight"},
		{"America/St_Johns", utc(2007, 3, 7, 0, 0, 0), 9, false, "a gap at 00:01"},
		{"America/St_Johns", utc(2007, 11, 1, 0, 0, 0), 9, false, "a fold at 00:01, back to yesterday"},
		{"America/Nuuk", utc(2024, 3, 26, 0, 0, 0), 9, false, "a gap that ends at midnight"},
		{"Asia/Pyongyang", utc(2018, 5, 1, 0, 0, 0), 9, false, "half an hour before midnight, and not for daylight saving"},
		{"America/Caracas", utc(2016, 4, 28, 0, 0, 0), 9, false, "half an hour, and not for daylight saving"},
		{"Antarctica/Casey", utc(2018, 3, 7, 0, 0, 0), 9, false, "back by three hours"},
		{"Antarctica/Troll", utc(2026, 3, 26, 0, 0, 0), 9, false, "two hours"},
		{"Africa/Casablanca", utc(2026, 2, 11, 0, 0, 0), 9, false, "back to winter time, for Ramadan"},
		{"Africa/Casablanca", utc(2026, 3, 18, 0, 0, 0), 9, false, "and forward again"},
		{"Europe/Dublin", utc(2026, 10, 22, 0, 0, 0), 9, false, "daylight saving in winter, by the book"},
		{"Pacific/Apia", utc(2011, 12, 26, 0, 0, 0), 9, false, "no 30 December"},
		{"Pacific/Kwajalein", utc(1993, 8, 18, 0, 0, 0), 9, false, "no 21 August"},
		{"Pacific/Kwajalein", utc(1969, 9, 27, 0, 0, 0), 9, false, "30 September almost twice"},
	}
)

// compare holds the ticks of a spec against the oracle's, complete lists.
func compare(t *testing.T, spec string, loc *time.Location, moments []moment) {
	t.Helper()
	from, to := time.Unix(moments[0].at-1, 0), time.Unix(moments[len(moments)-1].at, 0)
	p := patternOf(spec)
	moments = p.concerned(moments)
	full := p.ticks(moments, GapRunAfter, FoldTwice)
	for _, policy := range policies {
		s := mustParse(t, spec, loc, policy.gap, policy.fold)
		want := p.ticks(moments, policy.gap, policy.fold)
		same(t, loc, want, unix(all(s, from, to)), "%q in %v, %v, %v", spec, loc, policy.gap, policy.fold)

		// What is dropped is what the other policies would have run besides.
		dropped := unix(Dropped(s, from, to, 1<<20))
		var missing []int64
		for _, tick := range full {
			if _, ok := slices.BinarySearch(want, tick); !ok {
				missing = append(missing, tick)
			}
		}
		same(t, loc, missing, dropped, "dropped of %q in %v, %v, %v", spec, loc, policy.gap, policy.fold)
	}
}

func unix(ticks []time.Time) []int64 {
	var seconds []int64
	for _, tick := range ticks {
		seconds = append(seconds, tick.Unix())
	}
	return seconds
}

// same shows where two lists of instants begin to differ.
func same(t *testing.T, loc *time.Location, want, got []int64, format string, args ...any) {
	t.Helper()
	if slices.Equal(want, got) {
		return
	}
	i := 0
	for i < len(want) && i < len(got) && want[i] == got[i] {
		i++
	}
	text := func(list []int64) (text []string) {
		for _, at := range list[i:min(i+5, len(list))] {
			text = append(text, time.Unix(at, 0).In(loc).Format("Mon 2006-01-02 15:04:05 -07:00"))
		}
		return text
	}
	require.Fail(t, "other ticks", "%s:\nwant %d, from #%d %q\n got %d, %q", fmt.Sprintf(format, args...), len(want), i, text(want), len(got), text(got))
}

// The rules are what robfig/cron #541 and temporal #8087 and #8205 ask for: a daily job is not to
// vanish in the gap, nor to run twice in the fold, and both are the user's choice.
func TestTicksAreThoseOfAClockOnTheWall(t *testing.T) {
	for i, span := range spans {
		t.Run(span.zone+span.from.Format(time.DateOnly), func(t *testing.T) {
			t.Parallel()
			loc := zone(t, span.zone)
			moments := watch(loc, span.from, span.from.AddDate(0, 0, span.days), time.Minute)
			// Half of the instants to look from are near a clock change.
			var changes []int64
			for _, m := range moments {
				if m.again || m.skipped != nil {
					changes = append(changes, m.at)
				}
			}
			require.Equal(t, span.unchanged, changes == nil, "%s", span.why)
			rnd := rand.New(rand.NewPCG(5, uint64(i)))
			for _, spec := range specs {
				compare(t, spec, loc, moments)
			}
			if span.days > 100 {
				return // the rest is as good near the changes, and slow over years
			}
			for _, spec := range []string{"* * * * *", "*/7 * * * 1-5", "* 0-22 * * *"} {
				compare(t, spec, loc, moments)
			}
			for range 8 {
				compare(t, randomSpec(rnd), loc, moments)
			}
			for _, spec := range []string{"*/5 * * * *", "30 2 * * *", "0 0 * * *", "*/20 0-3,23 * * *", "30 2 * * 0"} {
				compareAnywhere(t, rnd, spec, loc, moments, changes)
			}
		})
	}
}

func randomSpec(rnd *rand.Rand) string {
	number := func(low, high int) string { return strconv.Itoa(low + rnd.IntN(high-low+1)) }
	field := func(low, high int) string {
		switch rnd.IntN(6) {
		case 0:
			return number(low, high)
		case 1:
			return number(low, high) + "," + number(low, high) + "," + number(low, high)
		case 2:
			return "*/" + number(2, 9)
		case 3:
			middle := (low + high) / 2
			return number(low, middle) + "-" + number(middle, high)
		case 4:
			return number(low, high) + "/" + number(1, 9)
		}
		return "*"
	}
	return field(0, 59) + " " + field(0, 23) + " " + field(1, 31) + " " + field(1, 12) + " " + field(0, 6)
}

// compareAnywhere asks for the first tick after instants anywhere in the year.
func compareAnywhere(t *testing.T, rnd *rand.Rand, spec string, loc *time.Location, moments []moment, changes []int64) {
	t.Helper()
	tokyo := zone(t, "Asia/Tokyo")
	p := patternOf(spec)
	start := moments[0].at
	length := moments[len(moments)-1].at - start
	moments = p.concerned(moments)
	for _, policy := range policies {
		s := mustParse(t, spec, loc, policy.gap, policy.fold)
		want := p.ticks(moments, policy.gap, policy.fold)
		for i := range 200 {
			at := start + rnd.Int64N(length)
			if i%2 == 0 && changes != nil {
				at = changes[rnd.IntN(len(changes))] + rnd.Int64N(4*3600) - 2*3600
			}
			if i%8 == 0 && changes != nil {
				at = changes[0] - 1 // the last moment before a change
			}
			from := time.Unix(at, rnd.Int64N(2)*999_999_999)
			if i%3 == 0 {
				from = from.In(tokyo)
			}
			first := sort.Search(len(want), func(i int) bool { return time.Unix(want[i], 0).After(from) })
			if first == len(want) {
				continue
			}
			next := s.Next(from)
			same(t, loc, want[first:first+1], []int64{next.Unix()}, "%q after %v, %v, %v", spec, from.In(loc), policy.gap, policy.fold)
			require.Equal(t, loc, next.Location())
		}
	}
}

func TestSecondsBesideAClockChangeAreThoseOfAClockOnTheWall(t *testing.T) {
	for _, change := range []struct {
		zone string
		from time.Time
	}{
		{"Europe/Berlin", utc(2026, 3, 28, 21, 0, 0)},
		{"Europe/Berlin", utc(2026, 10, 24, 21, 0, 0)},
		{"Australia/Lord_Howe", utc(2026, 4, 4, 12, 0, 0)},
		{"Australia/Lord_Howe", utc(2026, 10, 3, 12, 0, 0)},
		{"America/St_Johns", utc(2007, 11, 4, 0, 0, 0)},
		// Local mean time, 53 minutes and 28 seconds ahead, ended.
		{"Europe/Berlin", utc(1893, 3, 31, 21, 0, 0)},
	} {
		t.Run(fmt.Sprint(change.zone, change.from.Format(time.DateOnly)), func(t *testing.T) {
			loc := zone(t, change.zone)
			moments := watch(loc, change.from, change.from.Add(8*time.Hour), time.Second)
			require.True(t, slices.ContainsFunc(moments, func(m moment) bool { return m.again || m.skipped != nil }))
			for _, spec := range []string{
				"* * * * * *", "*/20 */15 * * * *", "30 0 2 * * *", "0 0 3 * * *", "59 59 1 * * *", "*/20 59,0 1-3 * * *", "* * 2 * * *", "* * 1,2 * * *", "7,8 30 23,0 * * *",
			} {
				compare(t, spec, loc, moments)
			}
		})
	}
}

// Clocks are put back, and within the hour that they show again something changes, but not they.
func TestAChangeOfTheNameOnlyChangesNoTicks(t *testing.T) {
	at := utc(2026, 6, 1, 12, 0, 0)
	loc := madeUp(t, change{at, -3600}, change{at.Add(20 * time.Minute), -3600}, change{at.Add(48 * time.Hour), 0}, change{at.Add(49 * time.Hour), 0})
	moments := watch(loc, at.Add(-24*time.Hour), at.Add(72*time.Hour), time.Minute)
	for _, spec := range append(specs, "*/5 11 * * *", "* 11-12 * * *", "50 11 * * *") {
		compare(t, spec, loc, moments)
	}
}

func TestByDefaultADailyJobRunsOnceOnEachDayWhateverItsTime(t *testing.T) {
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe"} {
		loc := zone(t, name)
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, loc)
		for minute := range 24 * 60 {
			if minute > 4*60 && minute%15 != 0 {
				continue
			}
			s := mustParse(t, fmt.Sprintf("%d %d * * *", minute%60, minute/60), loc, GapRunAfter, FoldOnce)
			day := 1
			for tick := s.Next(start.Add(-1)); tick.Year() == 2026; tick = s.Next(tick) {
				require.Equal(t, day, tick.YearDay(), "%v", tick)
				day++
			}
			require.Equal(t, 366, day)
		}
	}
}

func TestPoliciesBesideOneAnother(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	gap, fold := time.Date(2026, 3, 29, 0, 0, 0, 0, berlin), time.Date(2026, 10, 25, 0, 0, 0, 0, berlin)
	for _, test := range []struct {
		spec string
		gap  Gap
		fold Fold
		day  time.Time
		want string
	}{
		{"30 2 * * *", GapRunAfter, FoldOnce, gap, "03:00 CEST"},
		{"30 2 * * *", GapSkip, FoldOnce, gap, ""},
		{"30 2 * * *", GapRunAfter, FoldOnce, fold, "02:30 CEST"},
		{"30 2 * * *", GapRunAfter, FoldTwice, fold, "02:30 CEST, 02:30 CET"},
		{"*/15 2 * * *", GapRunAfter, FoldOnce, gap, "03:00 CEST"},
		{"0 2,3 * * *", GapRunAfter, FoldOnce, gap, "03:00 CEST"},
		{"0 2,3 * * *", GapSkip, FoldOnce, gap, "03:00 CEST"},
		{"0 0-4/2 * * *", GapRunAfter, FoldOnce, gap, "00:00 CET, 03:00 CEST, 04:00 CEST"},
		{"0 0-4 * * *", GapRunAfter, FoldOnce, fold, "00:00 CEST, 01:00 CEST, 02:00 CEST, 03:00 CET, 04:00 CET"},
		{"0 * 29 3 *", GapRunAfter, FoldOnce, gap, "00:00 CET, 01:00 CET, 03:00 CEST, 04:00 CEST"},
		{"0 * 25 10 *", GapRunAfter, FoldOnce, fold, "00:00 CEST, 01:00 CEST, 02:00 CEST, 02:00 CET, 03:00 CET, 04:00 CET"},
	} {
		text := ""
		for _, tick := range all(mustParse(t, test.spec, berlin, test.gap, test.fold), test.day.Add(-1), test.day.Add(5*time.Hour)) {
			if tick.Hour() > 4 {
				break
			}
			if text != "" {
				text += ", "
			}
			text += tick.Format("15:04 MST")
		}
		assert.Equal(t, test.want, text, "%q, %v, %v, %v", test.spec, test.gap, test.fold, test.day)
	}
}

func TestDroppedTellsNoMoreThanItIsAskedFor(t *testing.T) {
	s := mustParse(t, "*/10 2 * * *", zone(t, "Europe/Berlin"), GapSkip, FoldOnce)
	fold := utc(2026, 10, 25, 1, 0, 0) // 02:00 for the second time
	assert.Len(t, Dropped(s, utc(2000, 1, 1, 0, 0, 0), utc(2026, 1, 1, 0, 0, 0), 1000), 26*7)
	assert.Len(t, Dropped(s, utc(2000, 1, 1, 0, 0, 0), utc(2026, 1, 1, 0, 0, 0), 9), 9)
	assert.Empty(t, Dropped(s, utc(2000, 1, 1, 0, 0, 0), utc(2026, 1, 1, 0, 0, 0), 0))
	assert.Len(t, Dropped(s, fold.Add(-1), fold, 9), 1)
	assert.Len(t, Dropped(s, fold, fold.Add(10*time.Minute), 9), 1)
	assert.Empty(t, Dropped(s, fold, fold, 9))
	assert.Empty(t, Dropped(s, fold.Add(time.Hour), fold, 9))
	assert.NotEmpty(t, Dropped(s, time.Time{}, time.Unix(1<<40, 0), 1<<20))
	for _, spec := range []string{"*/5 * * * *", "@every 1m"} {
		assert.Empty(t, Dropped(mustParse(t, spec, zone(t, "Europe/Berlin"), GapSkip, FoldOnce), utc(2000, 1, 1, 0, 0, 0), fold, 9))
	}
}

func TestACronSpecHasFiveYearsToComeDue(t *testing.T) {
	now := utc(2026, 11, 1, 0, 0, 0)
	for spec, never := range map[string]bool{
		"0 0 29 2 *": false, "0 0 1 1 *": false, "0 0 31 12 *": false,
		"0 0 30 2 *": true, "0 0 31 4,6,9,11 *": true, "0 0 30,31 2 ?": true,
	} {
		assert.Equal(t, never, Never(mustParse(t, spec, zone(t, "Europe/Berlin"), GapRunAfter, FoldOnce), now), spec)
	}
	leap := mustParse(t, "0 0 29 2 *", time.UTC, GapRunAfter, FoldOnce)
	assert.True(t, Never(leap, utc(2096, 3, 1, 0, 0, 0)), "the next is in 2104")
	assert.False(t, Never(leap, utc(2099, 1, 1, 0, 0, 0)))
}

func TestTimesFarFromNowDoNoHarm(t *testing.T) {
	for _, spec := range []string{"* * * * * *", "30 2 * * *", "0 0 29 2 *", "@every 90s", "@at 2026-12-24T18:00:00Z"} {
		s := mustParse(t, spec, zone(t, "Europe/Berlin"), GapRunAfter, FoldOnce)
		for _, far := range []time.Time{time.Unix(1<<62, 0), time.Unix(1<<40, 0), latest} {
			assert.True(t, Never(s, far), "%s after %v", spec, far)
		}
		for _, far := range []time.Time{{}, time.Unix(-1<<62, 0), time.Unix(-1<<40, 0), earliest} {
			next := s.Next(far)
			assert.True(t, next.After(earliest) && next.After(far), "%s after %v", spec, far)
		}
		Newest(s, time.Unix(-1<<62, 0), time.Unix(1<<62, 0))
		Last(s, time.Unix(-1<<62, 0), time.Unix(1<<62, 0), 10)
	}
	// Even if there is nothing to be found in all these years.
	never := mustParse(t, "0 0 30 2 *", zone(t, "Europe/Berlin"), GapSkip, FoldOnce)
	assert.True(t, Never(never, time.Unix(-1<<62, 0)))
	assert.Empty(t, Dropped(never, time.Unix(-1<<62, 0), time.Unix(1<<62, 0), 10))
}
