package redlocktest

import (
	"sync"
	"time"
)

// A Clock is the clock of a client machine, for redlock.WithClock. It runs by time.Now, so that
// it is exact in a testing/synctest bubble, and can be wrong in the ways that machines are.
type Clock struct {
	origin time.Time

	mu    sync.Mutex
	skew  time.Duration
	slept time.Duration
}

// NewClock makes a clock that is right.
func NewClock() *Clock { return &Clock{origin: time.Now()} }

// Now is the wall clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.skew + c.slept)
}

// Elapsed is the time since the clock was made, by a clock that cannot be set.
func (c *Clock) Elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.origin) + c.slept
}

// Skew sets the wall clock d ahead of the right time; a negative d sets it behind.
func (c *Clock) Skew(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skew = d
}

// Suspend lets d pass on both clocks while timers stand still, as when the machine sleeps.
func (c *Clock) Suspend(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slept += d
}
