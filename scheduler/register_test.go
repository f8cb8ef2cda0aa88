package scheduler

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/crontab"
	"github.com/quorate/quorate/redlock"
)

func mustParse(t *testing.T, spec string) crontab.Schedule {
	t.Helper()
	s, err := crontab.Parse(spec, time.UTC, crontab.GapRunAfter, crontab.FoldOnce)
	require.NoError(t, err)
	return s
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
				if known := oracle[at.Unix()]; (known || exact) && set.has(at) != known {
					t.Fatalf("that %v was added is %v, and the set says otherwise: %v", at.Unix(), known, set)
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
	want := register{
		Version: registerVersion, Spec: "s", Since: 3, Settled: ticks{Floor: 2, Spans: []span{{3, 4}}}, Aged: 1, Queued: 9,
		Open:     []open{{Kind: Scheduled, Tick: 4, Attempt: 2, By: "a", Token: 9, Begun: 5, Steps: []step{{Name: "charge", Result: []byte{0, 255}}}}},
		Triggers: 1, Backfills: 2, Filled: 3,
		Ledger: []entry{{Kind: Triggered, Tick: 3, Ticks: 2, Outcome: Missed, Reason: Late, By: "b", Token: 7, Attempt: 1, Begun: 1, Ended: 2, Err: "e"}},
	}
	got, err := readRegister(want.encode())
	require.NoError(t, err)
	require.Equal(t, want, got)
	_, err = readRegister(nil)
	require.NoError(t, err)
}

// What a job needs to go on has room beside the longest identities; the ledger gives way.
func TestARegisterAlwaysFits(t *testing.T) {
	r := register{Spec: "0123456789ab", Since: 1 << 42}
	long := strings.Repeat("i", maxIdentity)
	for i := range maxOpen {
		r.Settled.Spans = append(r.Settled.Spans, span{int64(i)<<42 + 1, int64(i)<<42 + 2})
		r.Open = append(r.Open, open{Kind: Backfilled, Tick: 1 << 42, Request: int64(i), Attempt: 1000, By: long, Token: 1 << 52, Begun: 1 << 42})
	}
	for range 3 * maxLedger {
		r.note(r.Open[0].entry(Interrupted, Attempts, time.UnixMilli(1<<42), errors.New(strings.Repeat("e", 1000))))
	}
	require.Len(t, r.Ledger, maxLedger)
	state := r.encode()
	require.LessOrEqual(t, len(state), redlock.MaxStateSize)
	got, err := readRegister(state)
	require.NoError(t, err)
	require.Equal(t, r.Open, got.Open)
	require.NotEmpty(t, got.Ledger)
	require.Equal(t, r.Ledger[maxLedger-1], got.Ledger[len(got.Ledger)-1], "the oldest lines go first")

	r = register{Settled: r.Settled, Open: r.Open[:1], Ledger: r.Ledger}
	r.Open[0].Steps = []step{{Name: "s", Result: make([]byte, MaxSteps)}}
	require.LessOrEqual(t, len(r.encode()), redlock.MaxStateSize)
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
