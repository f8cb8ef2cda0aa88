package rig

import (
	"sync"
	"time"
)

// A Clock is that of a client's machine: a wall clock that is set, and elapsed time that runs at a
// rate of its own. The wall clock does not follow the rate, as one that is kept in step by NTP
// does not.
type Clock struct {
	mu    sync.Mutex
	base  int64         // stamp of the last change
	since time.Duration // elapsed then
	ppm   int64
	skew  time.Duration
}

// NewClock makes a clock whose wall clock is ahead by skew, and whose elapsed time runs so many parts
// per million fast.
func NewClock(skew time.Duration, ppm int64) *Clock {
	return &Clock{base: Stamp(), skew: skew, ppm: ppm}
}

// Now is the wall clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.skew)
}

// Elapsed is the time since the clock was made.
func (c *Clock) Elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.elapsed(Stamp())
}

func (c *Clock) elapsed(at int64) time.Duration {
	d := time.Duration(at - c.base)
	return c.since + d + d/1_000_000*time.Duration(c.ppm)
}

// Set changes both, the rate from now on.
func (c *Clock) Set(skew time.Duration, ppm int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := Stamp()
	c.base, c.since, c.ppm, c.skew = now, c.elapsed(now), ppm, skew
}

// Ends is the stamp at which a time by this clock will have passed that begins now. A change of
// the rate in between makes no difference of note: rates change by 1 %, and that seldom.
func (c *Clock) Ends(now int64, left time.Duration) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now + int64(left) - int64(left)/1_000_000*c.ppm
}
