package scheduler

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func mustParse(t *testing.T, spec string) cron.Schedule {
	t.Helper()
	s, err := parse(spec, time.UTC, time.Unix(0, 0))
	require.NoError(t, err)
	return s
}

func TestIntervalsCountFromTheEpoch(t *testing.T) {
	s := mustParse(t, "@every 7s")
	for _, at := range []time.Time{time.Unix(0, 0), time.Unix(6, 999_999_999), time.Unix(1e9, 5), time.Unix(-3, 0), time.Unix(-7, 0), time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)} {
		next := s.Next(at)
		assert.Zero(t, next.Unix()%7)
		assert.Zero(t, next.Nanosecond())
		assert.True(t, next.After(at))
		assert.LessOrEqual(t, next.Sub(at), 7*time.Second)
	}
}

func TestTheZoneOfASpecWinsOverThatOfTheJob(t *testing.T) {
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	require.NoError(t, err)
	for spec, want := range map[string]string{
		"0 2 * * *":                          "02:00 JST",
		"CRON_TZ=America/New_York 0 2 * * *": "02:00 EST",
		"TZ=UTC @daily":                      "00:00 UTC",
	} {
		s, err := parse(spec, tokyo, time.Now())
		require.NoError(t, err)
		assert.Equal(t, want, s.Next(time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)).Format("15:04 MST"))
	}
}

// The newest tick, found the dumb way.
func TestNewestIsTheLastTickThatIsDue(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, spec := range []string{"* * * * * *", "*/7 3-5 * * * *", "@every 7s", "0 2 * * *", "0 0 1 1 *"} {
		s := mustParse(t, spec)
		for range 20 {
			due := s.Next(time.Unix(rnd.Int64N(1e9), 0))
			now := due.Add(time.Duration(rnd.Int64N(int64(20_000 * time.Second))))
			want, passed := due, 0
			for next := s.Next(due); !next.After(now); next = s.Next(next) {
				want, passed = next, passed+1
			}
			got, n := newest(s, due, now)
			require.Equal(t, want, got)
			require.Equal(t, min(passed, maxPassed), n)
		}
	}
	s := mustParse(t, "* * * * * *")
	start := time.Now()
	got, n := newest(s, time.Unix(0, 0), time.Date(2026, 1, 1, 0, 0, 0, 5, time.UTC))
	assert.Equal(t, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), got.UTC())
	assert.Equal(t, maxPassed, n)
	assert.Less(t, time.Since(start), 5*time.Second, "56 years of seconds are not counted")
}

// The set errs to one side only, and where it is small enough not at all.
func TestASetOfTicksNeverForgetsOne(t *testing.T) {
	s := mustParse(t, "@every 2s")
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		var set ticks
		oracle := map[int64]bool{}
		spread := 1 + rnd.Int64N(200)
		exact := true
		for range 60 {
			tick := time.Unix(1000+2*rnd.Int64N(spread), 0)
			if rnd.IntN(3) > 0 {
				tick = time.Unix(1000+2*int64(len(oracle)), 0)
			}
			set.add(tick, s)
			oracle[tick.Unix()] = true
			exact = exact && set.Floor == 0
			require.LessOrEqual(t, len(set.Spans), maxSpans)
			for i := int64(0); i < spread+60; i++ {
				at := time.Unix(1000+2*i, 0)
				if oracle[at.Unix()] {
					require.True(t, set.has(at))
				} else if exact {
					require.False(t, set.has(at), "%v of %v", at.Unix(), set)
				}
			}
		}
	}
}

func TestARunOfTicksTakesOneSpan(t *testing.T) {
	s := mustParse(t, "0 2 * * mon-fri")
	var set ticks
	tick := s.Next(time.Unix(0, 0))
	for range 1000 {
		set.add(tick, s)
		tick = s.Next(tick)
	}
	require.Len(t, set.Spans, 1)
	require.False(t, set.has(tick))
}

func TestARegisterSurvivesItsEncoding(t *testing.T) {
	want := register{Version: 1, Started: 5, Completed: 4, Attempt: 1, By: "a", Token: 9, Settled: ticks{Floor: 2, Spans: []span{{3, 4}}}}
	got, err := readRegister(want.encode())
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.True(t, got.open())
	empty, err := readRegister(nil)
	require.NoError(t, err)
	require.False(t, empty.open())
}

// Times with Go's monotonic clock are compared by that, which stands still in sleep. (In a
// testing/synctest bubble there is none.)
func TestTicksAreComparedByTheWallClock(t *testing.T) {
	s := &Scheduler{settings: settings{clock: systemClock{time.Now()}}}
	now := (&job{scheduler: s}).now()
	assert.Contains(t, time.Now().String(), "m=")
	assert.NotContains(t, now.String(), "m=")
	assert.NotContains(t, mustParse(t, "* * * * * *").Next(now).String(), "m=")
}
