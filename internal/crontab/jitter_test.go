package crontab

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Replicas with different versions of this package share jobs, so these values never change.
func TestJitterIsTheSameInAllVersions(t *testing.T) {
	for _, test := range []struct {
		job  string
		tick time.Time
		max  time.Duration
		want time.Duration
	}{
		{"nightly-report", utc(2026, 1, 5, 2, 0, 0), time.Minute, 7146 * time.Millisecond},
		{"nightly-report", utc(2026, 1, 6, 2, 0, 0), time.Minute, 2002 * time.Millisecond},
		{"nightly-report", utc(2026, 1, 6, 2, 0, 0), time.Hour, 120148 * time.Millisecond},
		{"cleanup", utc(2026, 1, 6, 2, 0, 0), time.Minute, 9808 * time.Millisecond},
		{"", time.UnixMilli(-1), 10 * time.Second, 728 * time.Millisecond},
	} {
		assert.Equal(t, test.want, Jitter(test.job, test.tick, test.max), "%s %v %v", test.job, test.tick, test.max)
		assert.Equal(t, test.want, Jitter(test.job, test.tick.In(zone(t, "Asia/Tokyo")), test.max))
	}
}

func TestJitterIsSpreadEvenlyBelowItsBound(t *testing.T) {
	var seen [100]int
	for i := range 10_000 {
		d := Jitter(fmt.Sprint("job-", i%100), time.Unix(int64(i/100)*60, 0), 100*time.Millisecond)
		assert.Zero(t, d%time.Millisecond)
		seen[d.Milliseconds()]++
	}
	for ms, n := range seen {
		assert.InDelta(t, 100, n, 60, "%d ms", ms)
	}
	for max, want := range map[time.Duration]time.Duration{
		-time.Hour: 0, 0: 0, 1: 0, time.Millisecond: 0,
	} {
		assert.Equal(t, want, Jitter("job", time.Unix(1, 0), max))
	}
	var most time.Duration
	for i := range 100 {
		most = max(most, Jitter("job", time.Unix(int64(i), 0), time.Millisecond+1))
	}
	assert.Equal(t, time.Millisecond, most, "which is below the bound")
	assert.Positive(t, Jitter("job", time.Unix(1, 0), 1<<63-1))
}
