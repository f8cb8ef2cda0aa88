package redlocktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock/redlocktest"
)

func TestAHostsClockRunsByTheBubblesTimeAndGoesWrongAsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := redlocktest.NewClock()
		time.Sleep(time.Hour)
		require.Equal(t, time.Hour, c.Elapsed())
		require.Equal(t, time.Now(), c.Now())

		c.Skew(-10 * time.Minute)
		require.Equal(t, time.Hour, c.Elapsed(), "only the wall clock can be set")
		require.Equal(t, time.Now().Add(-10*time.Minute), c.Now())

		c.Skew(0)
		c.Suspend(time.Minute)
		require.Equal(t, time.Hour+time.Minute, c.Elapsed(), "both count the time asleep")
		require.Equal(t, time.Now().Add(time.Minute), c.Now())
	})
}

func TestASleepingMachinesClocksStandStillAndThenShowWhatPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := redlocktest.NewClock()
		begin := c.Now()
		c.Sleep()
		time.Sleep(time.Minute)
		c.Sleep() // once more changes nothing
		require.Zero(t, c.Elapsed())
		require.Equal(t, begin, c.Now())
		c.Wake()
		require.Equal(t, time.Minute, c.Elapsed())
		require.Equal(t, time.Minute, c.Now().Sub(begin))
		c.Wake()
		time.Sleep(time.Second)
		require.Equal(t, 61*time.Second, c.Elapsed())
	})
}
