package crontab

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A change is when clocks in a location of a test's get another offset from UTC, in seconds.
type change struct {
	at     time.Time
	offset int32
}

// madeUp is a location whose clocks show UTC until the first change, in the format of RFC 9636.
func madeUp(t testing.TB, changes ...change) *time.Location {
	t.Helper()
	data := append([]byte("TZif"), make([]byte, 16)...)
	// No UT and standard time indicators, no leap seconds; a type for each change and for before.
	for _, n := range []int{0, 0, 0, len(changes), len(changes) + 1, 4} {
		data = binary.BigEndian.AppendUint32(data, uint32(n))
	}
	for _, c := range changes {
		data = binary.BigEndian.AppendUint32(data, uint32(c.at.Unix()))
	}
	for i := range changes {
		data = append(data, byte(i+1))
	}
	for _, c := range append([]change{{}}, changes...) {
		data = append(binary.BigEndian.AppendUint32(data, uint32(c.offset)), 0, 0)
	}
	loc, err := time.LoadLocationFromTZData("Test/MadeUp", append(data, "XYZ\x00"...))
	require.NoError(t, err)
	return loc
}

// By the time package's own account of one instant after the other.
func TestInAStretchClocksAreNotChanged(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 10))
	offset := func(loc *time.Location, at int64) int64 {
		_, offset := time.Unix(at, 0).In(loc).Zone()
		return int64(offset)
	}
	locations := []*time.Location{time.UTC, time.Local, time.FixedZone("", -3600)}
	for _, span := range spans {
		locations = append(locations, zone(t, span.zone))
	}
	for _, loc := range locations {
		for range 2000 {
			at := utc(1850, 1, 1, 0, 0, 0).Unix() + rnd.Int64N(250*366*daySeconds)
			s := stretchAt(loc, at)
			require.LessOrEqual(t, s.start, at)
			require.Greater(t, s.end, at)
			for range 5 {
				within := s.start + rnd.Int64N(min(s.end-s.start, 400*daySeconds))
				require.Equal(t, s.offset, offset(loc, within), "%v", time.Unix(within, 0).In(loc))
			}
			require.Equal(t, s.end, s.next().start)
		}
	}
}

// In the last hours of a leap year, time.Time.ZoneBounds gives an end that is over.
func TestTheLastHoursOfALeapYearArePartOfAStretch(t *testing.T) {
	for _, loc := range []*time.Location{zone(t, "Europe/Berlin"), zone(t, "Australia/Lord_Howe")} {
		for _, year := range []int{2028, 2040, 2096} {
			for hour := -72; hour < 72; hour++ {
				at := utc(year+1, 1, 1, hour, 0, 0)
				s := stretchAt(loc, at.Unix())
				require.Greater(t, s.end, at.Unix())
				_, offset := at.In(loc).Zone()
				require.Equal(t, int64(offset), s.offset)
			}
		}
	}
}
