package redlocktest_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock/redlocktest"
)

func TestKeysExpireWithoutTraffic(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		set(t, f.Clients()[0], "k", "v", 8*time.Second)
		assert.Equal(t, 8*time.Second, f.TTL(0, "k"))
		time.Sleep(8*time.Second - time.Nanosecond)
		assert.Equal(t, []string{"k"}, f.Keys(0))
		assert.Equal(t, time.Nanosecond, f.TTL(0, "k"))
		time.Sleep(time.Nanosecond)
		assert.Empty(t, f.Keys(0))
		assert.Zero(t, f.TTL(0, "k"))
		_, ok := f.Get(0, "k")
		assert.False(t, ok)
	})
}

func TestClocksOfNodesDiffer(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault func(f *redlocktest.Fleet)
		life  time.Duration // of a key of 8 s
	}{
		{"true time", func(*redlocktest.Fleet) {}, 8 * time.Second},
		{"jump forward", func(f *redlocktest.Fleet) { f.SkewClock(0, 3*time.Second) }, 5 * time.Second},
		{"jump back", func(f *redlocktest.Fleet) { f.SkewClock(0, -3*time.Second) }, 11 * time.Second},
		{"jumps add up", func(f *redlocktest.Fleet) {
			f.SkewClock(0, -3*time.Second)
			f.SkewClock(0, 4*time.Second)
		}, 7 * time.Second},
		{"fast", func(f *redlocktest.Fleet) { f.ClockRate(0, 2) }, 4 * time.Second},
		{"slow", func(f *redlocktest.Fleet) { f.ClockRate(0, 0.5) }, 16 * time.Second},
		{"fast, then true", func(f *redlocktest.Fleet) {
			f.ClockRate(0, 2)
			time.AfterFunc(2*time.Second, func() { f.ClockRate(0, 1) })
		}, 6 * time.Second},
		{"skewed while down", func(f *redlocktest.Fleet) {
			f.Stop(0)
			f.SkewClock(0, time.Second)
			f.Restart(0)
		}, 7 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, 2, func(t *testing.T, f *redlocktest.Fleet) {
				for _, c := range f.Clients() {
					set(t, c, "k", "v", 8*time.Second)
				}
				start := time.Now()
				test.fault(f)
				var life, other time.Duration
				for f.TTL(0, "k") > 0 || f.TTL(1, "k") > 0 {
					time.Sleep(10 * time.Millisecond)
					if f.TTL(0, "k") == 0 && life == 0 {
						life = time.Since(start)
					}
					if f.TTL(1, "k") == 0 && other == 0 {
						other = time.Since(start)
					}
				}
				assert.Equal(t, test.life, life)
				assert.Equal(t, 8*time.Second, other, "the other node's clock is true")
			})
		})
	}
}

func TestAClockThatStandsStillExpiresNothing(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		set(t, f.Clients()[0], "k", "v", time.Second)
		f.ClockRate(0, 0)
		time.Sleep(24 * time.Hour)
		assert.Equal(t, time.Second, f.TTL(0, "k"))
	})
}

func TestTimeAndInfoShowTheNodesClock(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		c := f.Clients()[0]
		f.SkewClock(0, 10*time.Minute)
		want := time.Now().Add(10 * time.Minute)
		got, err := c.Time(t.Context()).Result()
		require.NoError(t, err)
		assert.True(t, want.Equal(got), "got %v, want %v", got, want)
		fields := info(t, c)
		assert.Equal(t, want.UnixMicro(), parseInt(t, fields["server_time_usec"]))
		assert.Equal(t, "4200", fields["uptime_in_seconds"])
	})
}

func TestScriptsSeeTheNodesClock(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		c := f.Clients()[0]
		set(t, c, "k", "v", 8*time.Second)
		f.ClockRate(0, 2)
		time.Sleep(3 * time.Second)
		pttl := redis.NewScript(`return redis.call('PTTL', KEYS[1])`)
		assert.Equal(t, int64(2000), pttl.Run(t.Context(), c, []string{"k"}).Val())
	})
}
