package scheduler

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/crontab"
)

// For one clock and runs that take no time, what is run and what is missed can be said in a few
// words: of the ticks since the last visit, those within the window, by the policy.
func TestWhatIsDecidedIsWhatThePolicySays(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 11))
	for round := range 400 {
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
