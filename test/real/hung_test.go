package real_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/test/redisserver"
)

// steps are how long each step of one lease took.
type steps map[string]time.Duration

func takeSteps(t *testing.T, locker *redlock.Locker) steps {
	t.Helper()
	taken, start := steps{}, time.Now()
	lap := func(step string, err error) {
		taken[step] = time.Since(start)
		if err != nil { // other nodes may hang for a moment, where the machine is overloaded
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
		}
		start = time.Now()
	}
	lease, err := locker.Acquire(t.Context(), "sku:42")
	require.NoError(t, err)
	lap("acquire", err)
	lap("extend", lease.Extend(t.Context()))
	lap("release", lease.Release(t.Context()))
	return taken
}

// The two fleets take turns, step by step, so that whatever else the machine does slows both.
func TestWithOneOfFiveNodesHungEachStepIsAsFastAsWithAllAfterTheFirstSecond(t *testing.T) {
	const samples = 400
	whole := newLocker(t, redisserver.StartFleet(t, 5).Clients(), redlock.WithTrustPersistence())
	fleet := redisserver.StartFleet(t, 5)
	maimed := newLocker(t, fleet.Clients(), redlock.WithTrustPersistence())
	for range 50 {
		takeSteps(t, whole)
		takeSteps(t, maimed)
	}
	fleet[1].Pause()
	defer fleet[1].Resume()
	for first := time.Now(); time.Since(first) < time.Second; {
		takeSteps(t, maimed)
	}
	measured(t, func() string {
		healthy, hung := map[string][]time.Duration{}, map[string][]time.Duration{}
		for range samples {
			for step, took := range takeSteps(t, whole) {
				healthy[step] = append(healthy[step], took)
			}
			for step, took := range takeSteps(t, maimed) {
				hung[step] = append(hung[step], took)
			}
		}
		wrong := ""
		for _, step := range []string{"acquire", "extend", "release"} {
			ratio := float64(median(hung[step])) / float64(median(healthy[step]))
			t.Logf("%-8s p50 healthy %v, one hung %v: ratio %.2f (p99 %v and %v, longest %v and %v)", step,
				median(healthy[step]), median(hung[step]), ratio,
				quantile(healthy[step], 0.99), quantile(hung[step], 0.99),
				quantile(healthy[step], 1), quantile(hung[step], 1))
			if ratio > 1.5 {
				wrong = fmt.Sprintf("%s takes %.2f times as long with one node hung", step, ratio)
			}
		}
		return wrong
	})
}
