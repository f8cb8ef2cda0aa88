package redlocktest

import (
	"sync"
	"time"
)

// clock is the wall clock of one node's machine. It survives restarts of the
// node, and it may jump and run at a rate of its own.
type clock struct {
	mu     sync.Mutex
	anchor time.Time // true time of the last change, with its monotonic reading
	shown  time.Time // what this clock showed at the anchor; wall time only
	rate   float64
}

func newClock() *clock {
	now := time.Now()
	return &clock{anchor: now, shown: now.Round(0).UTC(), rate: 1}
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nowLocked(time.Now())
}

func (c *clock) nowLocked(at time.Time) time.Time {
	elapsed := at.Sub(c.anchor)
	if c.rate != 1 {
		elapsed = time.Duration(float64(elapsed) * c.rate)
	}
	return c.shown.Add(elapsed)
}

// set changes the rate and jumps by d. What the clock showed so far stays as
// it was: only time from here on runs at the new rate.
func (c *clock) set(rate float64, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.shown = c.nowLocked(now).Add(d)
	c.anchor = now
	c.rate = rate
}

func (c *clock) currentRate() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rate
}
