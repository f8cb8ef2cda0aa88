package redlocktest

import (
	"sync"
	"time"
)

// A Clock is the clock of a client machine, for redlock.WithClock. It runs by time.Now, so that
// it is exact in a testing/synctest bubble, and can be wrong in the ways that machines are.
type Clock struct {
	origin time.Time

	mu     sync.Mutex
	skew   time.Duration
	slept  time.Duration // by Suspend
	asleep time.Time     // since when, or zero
}

// NewClock makes a clock that is right.
func NewClock() *Clock { return &Clock{origin: time.Now()} }

// Now is the wall clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.present().Add(c.skew + c.slept)
}

// Elapsed is the time since the clock was made, by a clock that cannot be set.
func (c *Clock) Elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.present().Sub(c.origin) + c.slept
}

// present is true time, or the moment at which the machine fell asleep. Guarded by mu.
func (c *Clock) present() time.Time {
	if !c.asleep.IsZero() {
		return c.asleep
	}
	return time.Now()
}

// Skew sets the wall clock d ahead of the right time; a negative d sets it behind.
func (c *Clock) Skew(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skew = d
}

// Suspend lets d pass on both clocks while timers stand still, as when the machine sleeps. The
// rest of the world does not get older: where that matters, use Sleep and Wake.
func (c *Clock) Suspend(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slept += d
}

// Sleep stops both clocks, as a machine that falls asleep sees them, until Wake. Cut its host off
// meanwhile: what runs in a bubble cannot be stopped, but nobody should notice that it runs.
func (c *Clock) Sleep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asleep.IsZero() {
		c.asleep = time.Now()
	}
}

// Wake ends Sleep: both clocks show the time that has passed.
func (c *Clock) Wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asleep = time.Time{}
}
