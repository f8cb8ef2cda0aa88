package main

import (
	"sync"
	"time"
)

// clock is that of a client's machine: a wall clock that is set, and elapsed time that runs at a
// rate of its own. The wall clock does not follow the rate, as one that is kept in step by NTP
// does not.
type clock struct {
	mu    sync.Mutex
	base  int64         // stamp of the last change
	since time.Duration // elapsed then
	ppm   int64
	skew  time.Duration
}

func newClock(skew time.Duration, ppm int64) *clock {
	return &clock{base: stamp(), skew: skew, ppm: ppm}
}

// Now is the wall clock.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.skew)
}

// Elapsed is the time since the clock was made.
func (c *clock) Elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.elapsed(stamp())
}

func (c *clock) elapsed(at int64) time.Duration {
	d := time.Duration(at - c.base)
	return c.since + d + d/1_000_000*time.Duration(c.ppm)
}

// set changes both, the rate from now on.
func (c *clock) set(skew time.Duration, ppm int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := stamp()
	c.base, c.since, c.ppm, c.skew = now, c.elapsed(now), ppm, skew
}

// ends is the stamp at which a time by this clock will have passed that begins now. A change of
// the rate in between makes no difference of note: rates change by 1 %, and that seldom.
func (c *clock) ends(now int64, left time.Duration) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now + int64(left) - int64(left)/1_000_000*c.ppm
}
