package redisserver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAClockIsSteppedAndRunsFastAndKeepsThatOverARestart(t *testing.T) {
	s := Start(t, WithOwnClock())
	client := s.Client()
	const slack = time.Second
	offset := func() time.Duration {
		for {
			begun := time.Now()
			d, err := s.ClockOffset()
			require.NoError(t, err)
			if time.Since(begun) < slack { // half of it is how far it may be wrong
				return d
			}
		}
	}
	require.InDelta(t, 0, offset(), float64(slack))

	require.NoError(t, client.Set(t.Context(), "key", "value", time.Minute).Err())
	s.StepClock(-40 * time.Second)
	require.InDelta(t, -40*time.Second, offset(), float64(slack))
	require.Greater(t, client.PTTL(t.Context(), "key").Val(), time.Minute, "a step back lengthens keys")
	s.StepClock(120 * time.Second)
	require.InDelta(t, 80*time.Second, offset(), float64(slack))
	require.Zero(t, client.Exists(t.Context(), "key").Val(), "a step forward ends them")

	s.SetClockRate(9_000_000) // ten times as fast
	before := offset()
	require.Eventually(t, func() bool { return offset() > before+2*slack }, soon, 10*time.Millisecond)
	s.SetClockRate(0)
	before = offset()
	require.Greater(t, before, 80*time.Second)

	s.Restart()
	require.InDelta(t, before, offset(), float64(slack))
}
