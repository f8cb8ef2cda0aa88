package scheduler

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/crontab"
	"github.com/quorate/quorate/redlock"
)

// For one clock and runs that take no time, what is run and what is missed can be said in a few
// words: of the ticks since the last visit, those within the window, by the policy.
func TestWhatIsDecidedIsWhatThePolicySays(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 11))
	for round := range 250 {
		js := jobSettings{
			location: time.UTC, startDeadline: time.Duration(1+rnd.IntN(120)) * time.Second, catchUp: time.Duration(rnd.IntN(600)) * time.Second,
			misfire: []MisfirePolicy{MisfireNewest(), MisfireSkip(), MisfireAll(1 + rnd.IntN(30))}[rnd.IntN(3)], maxAttempts: 1, concurrency: maxOpen,
		}
		interval := time.Duration(5+rnd.IntN(90)) * time.Second // so that no more than maxDue fall due
		j := &job{name: "j", settings: js, fingerprint: "f", schedule: mustParse(t, fmt.Sprint("@every ", interval))}
		now := time.Unix(1_764_000_000, 0).Add(time.Duration(rnd.IntN(1e6)) * time.Millisecond)
		var reg register
		control := &control{}
		c := &circumstances{from: now, control: control, alive: func(*open) bool { return false }, hindrance: func(time.Time) Reason { return "" }, adopt: true}
		visit := func() (ran []time.Time, missed map[Reason]int) {
			missed = map[Reason]int{}
			for {
				c.now = now
				d := j.decide(&reg, c)
				for _, e := range d.settled {
					missed[e.Reason] += max(1, e.Ticks)
				}
				if !d.write {
					require.False(t, d.next.IsZero())
					require.True(t, d.next.After(now))
					return ran, missed
				}
				c.adopt = false
				if d.run != nil {
					require.Equal(t, 1, d.run.Attempt)
					ran = append(ran, time.UnixMilli(d.run.Tick))
					require.True(t, reg.end(d.run))
				}
				var err error
				reg, err = readRegister(reg.encode())
				require.NoError(t, err)
			}
		}
		ran, missed := visit()
		require.Empty(t, ran)
		require.Empty(t, missed)
		for range 30 {
			last := now
			now = now.Add(time.Duration(rnd.ExpFloat64() * float64(3*interval)))
			if rnd.IntN(10) == 0 {
				now = now.Add(time.Duration(rnd.IntN(3600)) * time.Second)
			}
			paused := rnd.IntN(10) == 0
			if paused {
				control.pause(last, "p")
			}
			var want []time.Time
			fell := crontab.Last(j.schedule, last, now, 1e6)
			for _, tick := range fell {
				if tick.After(now.Add(-js.window())) && !paused {
					want = append(want, tick)
				}
			}
			switch {
			case js.misfire.kind == misfireAll && len(want) > js.misfire.limit:
				want = want[len(want)-js.misfire.limit:]
			case js.misfire.kind != misfireAll && len(want) > 1:
				want = want[len(want)-1:]
			}
			ran, missed := visit()
			require.Len(t, ran, len(want), "round %d: %v of %d ticks", round, js.misfire, len(fell))
			for i := range want {
				require.True(t, want[i].Equal(ran[i]))
			}
			n := 0
			for why, ticks := range missed {
				n += ticks
				require.Equal(t, paused, why == Paused, "%v", missed)
			}
			require.Equal(t, len(fell)-len(want), n, "each is run or missed, and told once")
			if paused {
				control.resume(now)
			}
		}
	}
}

// A desk asks decide as a lone replica would, with runs that its test begins and ends.
type desk struct {
	t   *testing.T
	j   *job
	reg register
	circumstances
}

func newDesk(t *testing.T, schedule crontab.Schedule, now time.Time, set func(*jobSettings)) *desk {
	js := jobSettings{location: time.UTC, startDeadline: time.Minute, catchUp: time.Hour, maxAttempts: 1, concurrency: maxOpen}
	set(&js)
	d := &desk{t: t, j: &job{name: "j", settings: js, fingerprint: "f", schedule: schedule}}
	d.circumstances = circumstances{
		now: now, from: now, control: &control{}, alive: func(*open) bool { return false },
		hindrance: func(time.Time) Reason { return "" }, adopt: true,
	}
	d.visit(now)
	return d
}

// visit asks until there is nothing more to do or a run is to begin, and gives the ticks that were
// missed meanwhile.
func (d *desk) visit(now time.Time) (run *open, missed []time.Time) {
	d.t.Helper()
	d.now = now
	for range 20 {
		decided := d.j.decide(&d.reg, &d.circumstances)
		d.adopt = false
		for _, e := range decided.settled {
			for at := time.UnixMilli(e.Tick).UTC(); len(missed) < 100; at = d.j.schedule.Next(at) {
				missed = append(missed, at)
				if e.Ticks--; e.Ticks <= 0 {
					break
				}
			}
		}
		if decided.run != nil || !decided.write {
			return decided.run, missed
		}
	}
	require.Fail(d.t, "there is always more to do")
	return nil, nil
}

// during has a tick come due while a run goes on.
func (d *desk) during(run *open, tick time.Time) {
	d.j.overlap(&d.reg, run, tick, d.from)
}

func TestTicksBehindOneThatWasOverlappedAreStillCaughtUpWith(t *testing.T) {
	for _, overlap := range []OverlapPolicy{OverlapSkip, OverlapQueue} {
		start := time.Date(2030, 1, 1, 10, 0, 0, 0, time.UTC)
		at := func(m int) time.Time { return start.Add(time.Duration(m) * time.Minute) }
		d := newDesk(t, mustParse(t, "*/10 * * * *"), at(-1), func(js *jobSettings) { js.misfire, js.overlap, js.catchUp = MisfireAll(10), overlap, 3*time.Hour })
		run, _ := d.visit(at(35))
		require.Equal(t, at(0).UnixMilli(), run.Tick)
		d.during(run, at(40))
		d.during(run, at(50))
		d.reg.end(run)
		want := []int{10, 20, 30}
		if overlap == OverlapQueue {
			want = append(want, 40)
		}
		for _, m := range want {
			run, missed := d.visit(at(55))
			require.NotNil(t, run, "%d", m)
			require.Empty(t, missed)
			require.Equal(t, at(m), time.UnixMilli(run.Tick).UTC())
			d.reg.end(run)
		}
		run, missed := d.visit(at(55))
		require.Nil(t, run)
		require.Empty(t, missed)
	}
}

func TestTicksBeforeAPauseAreStillCaughtUpWithAfterIt(t *testing.T) {
	start := time.Date(2030, 1, 1, 10, 0, 0, 0, time.UTC)
	at := func(m int) time.Time { return start.Add(time.Duration(m) * time.Minute) }
	d := newDesk(t, mustParse(t, "*/10 * * * *"), at(-1), func(js *jobSettings) { js.misfire = MisfireAll(10) })
	d.control.pause(at(25), "p")
	d.control.resume(at(45))
	var ran, missed []time.Time
	for range 4 {
		run, m := d.visit(at(55))
		missed = append(missed, m...)
		if run != nil {
			ran = append(ran, time.UnixMilli(run.Tick).UTC())
			d.reg.end(run)
		}
	}
	require.Equal(t, []time.Time{at(0), at(10), at(20), at(50)}, ran)
	require.Equal(t, []time.Time{at(30), at(40)}, missed)
}

func TestAQueuedTickIsEitherRunOrMissedHoweverLongItWaits(t *testing.T) {
	start := time.Date(2030, 1, 1, 10, 0, 0, 0, time.UTC)
	at := func(m int) time.Time { return start.Add(time.Duration(m) * time.Minute) }
	for _, misfire := range []MisfirePolicy{MisfireNewest(), MisfireSkip(), MisfireAll(5)} {
		for _, paused := range []bool{false, true} {
			d := newDesk(t, mustParse(t, "*/10 * * * *"), at(-1), func(js *jobSettings) {
				js.misfire, js.overlap, js.catchUp = misfire, OverlapQueue, 5*time.Minute
			})
			run, _ := d.visit(at(0))
			d.during(run, at(10))
			d.during(run, at(20))
			d.reg.end(run)
			if paused {
				d.control.pause(at(22), "p")
			}
			run, missed := d.visit(at(29))
			if paused {
				require.Nil(t, run)
				require.Equal(t, []time.Time{at(10)}, missed, "%v", misfire)
				continue
			}
			require.NotNil(t, run, "%v", misfire)
			require.Equal(t, at(10), time.UnixMilli(run.Tick).UTC())
			require.Empty(t, missed)
			d.reg.end(run)
			run, missed = d.visit(at(29))
			require.Nil(t, run)
			require.Empty(t, missed)
		}
	}
}

func TestATickThatAClockAheadHasQueuedPassesOverNone(t *testing.T) {
	start := time.Date(2030, 1, 1, 10, 0, 0, 0, time.UTC)
	at := func(m int) time.Time { return start.Add(time.Duration(m) * time.Minute) }
	for _, jitter := range []time.Duration{0, 5 * time.Minute} {
		d := newDesk(t, mustParse(t, "*/10 * * * *"), at(-1), func(js *jobSettings) {
			js.misfire, js.overlap, js.catchUp, js.jitter = MisfireAll(10), OverlapQueue, 3*time.Hour, jitter
		})
		run, _ := d.visit(at(6))
		require.NotNil(t, run)
		d.during(run, at(40)) // by the clock of its replica
		d.reg.end(run)
		var ran []time.Time
		for m := 7; m <= 50; m++ {
			run, missed := d.visit(at(m))
			require.Empty(t, missed)
			if run != nil {
				ran = append(ran, time.UnixMilli(run.Tick).UTC())
				d.reg.end(run)
			}
		}
		require.Equal(t, []time.Time{at(10), at(20), at(30), at(40)}, ran[:4])
	}
}

// One replica whose clock is a year ahead has told that a year of ticks was missed.
func TestWhatAWrongClockReportedIsReportedByTheOthersToo(t *testing.T) {
	start := time.Date(2030, 1, 1, 10, 0, 0, 0, time.UTC)
	at := func(m int) time.Time { return start.Add(time.Duration(m) * time.Minute) }
	for _, misfire := range []MisfirePolicy{MisfireSkip(), MisfireAll(2)} {
		d := newDesk(t, mustParse(t, "*/10 * * * *"), at(-1), func(js *jobSettings) { js.misfire, js.catchUp = misfire, 30*time.Minute })
		run, _ := d.visit(at(365 * 24 * 60))
		for ; run != nil; run, _ = d.visit(at(365 * 24 * 60)) {
			d.reg.end(run)
		}
		require.Greater(t, d.reg.Aged, at(1000).UnixMilli())
		var ran, missed []time.Time
		for range 5 {
			run, m := d.visit(at(95))
			missed = append(missed, m...)
			if run != nil {
				ran = append(ran, time.UnixMilli(run.Tick).UTC())
				d.reg.end(run)
			}
		}
		if misfire.kind == misfireAll {
			require.Equal(t, []time.Time{at(80), at(90)}, ran)
			require.Len(t, missed, 8)
		} else {
			require.Empty(t, ran)
			require.Len(t, missed, 10)
		}
	}
}

func TestTicksThatDaylightSavingLeftOutAreToldOnce(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	at := func(h, m int) time.Time { return time.Date(2030, 3, 31, h, m, 0, 0, berlin) }
	s, err := crontab.Parse("30 1-5 * * *", berlin, crontab.GapSkip, crontab.FoldOnce)
	require.NoError(t, err)
	for name, set := range map[string]func(*jobSettings){
		"nothing is run late":         func(js *jobSettings) { js.misfire = MisfireSkip() },
		"the next is yet to come":     func(js *jobSettings) { js.jitter = time.Hour },
		"the next one is run at once": func(*jobSettings) {},
	} {
		d := newDesk(t, s, at(1, 45), set)
		told := 0
		for _, now := range []time.Time{at(3, 30), at(3, 50), at(4, 45), at(4, 50)} {
			d.now = now
			for range 10 {
				decided := d.j.decide(&d.reg, &d.circumstances)
				for _, e := range decided.settled {
					if e.Reason == DST {
						told++
					}
				}
				if decided.run != nil {
					d.reg.end(decided.run)
				}
			}
		}
		require.Equal(t, 1, told, name)
	}
}

// A claim that was not confirmed costs nothing that may be run at any time, and no takeover.
func TestAClaimThatWasNotConfirmedIsMadeAgainHoweverOldItsTick(t *testing.T) {
	start := time.Date(2030, 1, 1, 10, 0, 0, 0, time.UTC)
	for _, o := range []open{
		{Kind: Backfilled, Tick: start.Add(-72 * time.Hour).UnixMilli(), Request: 1, Attempt: 1, Token: 5},
		{Kind: Triggered, Tick: start.Add(-2 * time.Hour).UnixMilli(), Request: 1, Attempt: 1, Token: 5},
		{Kind: Scheduled, Tick: start.Add(-2 * time.Hour).UnixMilli(), Attempt: 2, Token: 5},
	} {
		d := newDesk(t, mustParse(t, "@yearly"), start, func(js *jobSettings) { js.maxAttempts = 3 })
		d.reg.Open, d.ghosts = []open{o}, []redlock.Token{5}
		run, missed := d.visit(start)
		require.Empty(t, missed)
		require.NotNil(t, run, "%v", o)
		require.Equal(t, o.Attempt, run.Attempt)
		require.Equal(t, o.Tick, run.Tick)
	}
}

// Of a dead replica's run that was taken over later: the ticks before the takeover are not passed over
// silently by one that came due after it.
func TestTicksThatWereDueBeforeATakeoverAreNotLostToAnOverlapAfterIt(t *testing.T) {
	start := time.Date(2030, 1, 1, 10, 0, 0, 0, time.UTC)
	at := func(m int) time.Time { return start.Add(time.Duration(m) * time.Minute) }
	d := newDesk(t, mustParse(t, "*/10 * * * *"), at(-1), func(js *jobSettings) { js.maxAttempts = 3 })
	d.visit(at(0))
	run, missed := d.visit(at(25))
	require.Equal(t, 2, run.Attempt)
	require.Empty(t, missed)
	d.during(run, at(30))
	lines := 0
	for _, e := range d.reg.Ledger {
		lines += max(1, e.Ticks)
	}
	require.Equal(t, 3, lines, "10, 20 and 30: %v", d.reg.Ledger)
}

// The register was forgotten, and the control was not.
func TestRequestsAreNotDealtWithAgainWhenTheRegisterWasForgotten(t *testing.T) {
	start := time.Date(2030, 1, 1, 10, 0, 0, 0, time.UTC)
	d := newDesk(t, mustParse(t, "*/10 * * * *"), start, func(*jobSettings) {})
	d.reg, d.memory = register{}, 24*time.Hour
	require.NoError(t, d.control.trigger(&d.reg, start.Add(-25*time.Hour), "p"))
	require.NoError(t, d.control.fill(&d.reg, start.Add(-25*time.Hour), start.Add(-27*time.Hour), start.Add(-26*time.Hour), "p"))
	require.NoError(t, d.control.trigger(&d.reg, start.Add(-time.Hour), "p"))
	run, _ := d.visit(start.Add(time.Second))
	require.NotNil(t, run)
	require.EqualValues(t, 2, run.Request, "the one that is younger than what nodes forget")
	d.reg.end(run)
	run, _ = d.visit(start.Add(time.Second))
	require.Nil(t, run)
}

func TestABackfillIsOneRunAfterTheOtherThoughRunsMayOverlap(t *testing.T) {
	start := time.Date(2030, 1, 1, 10, 0, 0, 0, time.UTC)
	d := newDesk(t, mustParse(t, "*/10 * * * *"), start, func(js *jobSettings) { js.overlap = OverlapAllow })
	d.alive = func(*open) bool { return true }
	require.NoError(t, d.control.fill(&d.reg, start, start.Add(-time.Hour), start.Add(-time.Minute), "p"))
	first, _ := d.visit(start)
	require.Equal(t, Backfilled, first.Kind)
	second, _ := d.visit(start)
	require.Nil(t, second)
	tick, _ := d.visit(start.Add(10 * time.Minute))
	require.Equal(t, Scheduled, tick.Kind)
	d.reg.end(first)
	second, _ = d.visit(start.Add(10 * time.Minute))
	require.Equal(t, Backfilled, second.Kind)
}

// Whatever the policies are, together: each tick is run or missed, and told once.
func TestNoTickIsLostOrToldTwice(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 13))
	for round := range 400 {
		start := time.Unix(1_764_000_000, 0).UTC()
		schedule := mustParse(t, fmt.Sprint("@every ", 10+rnd.IntN(60), "s"))
		var settings jobSettings
		d := newDesk(t, schedule, start, func(js *jobSettings) {
			js.misfire = []MisfirePolicy{MisfireNewest(), MisfireSkip(), MisfireAll(1 + rnd.IntN(20))}[rnd.IntN(3)]
			js.overlap = []OverlapPolicy{OverlapSkip, OverlapQueue}[rnd.IntN(2)]
			js.catchUp = time.Duration(rnd.IntN(600)) * time.Second
			js.jitter = []time.Duration{0, 0, 45 * time.Second}[rnd.IntN(3)]
			js.maxAttempts = 5
			settings = *js
		})
		told, now, seen := 0, start, start
		ran := map[int64]bool{}
		count := func(entries []entry) {
			for _, e := range entries {
				told += max(1, e.Ticks)
			}
		}
		visit := func() *open {
			d.now = now
			for {
				decided := d.j.decide(&d.reg, &d.circumstances)
				d.adopt = false
				count(decided.settled)
				if decided.run != nil || !decided.write {
					return decided.run
				}
			}
		}
		for range 60 {
			now = now.Add(time.Duration(rnd.ExpFloat64() * float64(40*time.Second)))
			switch rnd.IntN(20) {
			case 0:
				d.control.pause(now, "p")
			case 1, 2:
				d.control.resume(now)
			}
			run := visit()
			if run == nil {
				continue
			}
			if run.Attempt == 1 {
				require.False(t, ran[run.Tick], "round %d: %v twice", round, run.Tick)
				ran[run.Tick] = true
			}
			if rnd.IntN(10) == 0 {
				continue // it is taken over
			}
			end := now.Add(time.Duration(rnd.ExpFloat64() * float64(50*time.Second)))
			for _, tick := range crontab.Last(schedule, seen, end, maxDue) {
				if tick.Add(d.j.delay(tick)).Before(end) {
					count(d.j.overlap(&d.reg, run, tick, d.from))
				}
			}
			now = end
			d.reg.end(run)
		}
		d.reg.Open = nil
		for run := visit(); run != nil; run = visit() {
			ran[run.Tick] = true
			d.reg.end(run)
		}
		fell := len(crontab.Last(schedule, start, now, 1e6))
		open := len(crontab.Last(schedule, now.Add(-settings.jitter), now, 1e6))
		require.LessOrEqual(t, len(ran)+told, fell, "round %d: %+v", round, settings)
		require.GreaterOrEqual(t, len(ran)+told, fell-open, "round %d: %+v", round, settings)
	}
}
