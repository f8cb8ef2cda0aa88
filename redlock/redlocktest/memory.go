package redlocktest

import (
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// memory is what a node remembers, with TTLs that run by the node's clock. It
// outlives the process that serves it, as a disk would.
type memory struct {
	redis *miniredis.Miniredis
	clock *clock

	// mu orders the clock's readings: an older one applied after a newer one
	// would take the time between them off every TTL twice.
	mu sync.Mutex
}

func newMemory(c *clock) *memory {
	m := &memory{redis: miniredis.NewMiniRedis(), clock: c}
	m.redis.SetTime(c.now())
	m.redis.ClockTTL(true)
	return m
}

// tick brings the memory up to the node's clock and drops what has expired.
// Not to be called from a command nested in a script, which holds miniredis'
// lock.
func (m *memory) tick() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tickLocked()
}

func (m *memory) tickLocked() {
	m.redis.SetTime(m.clock.now())
	m.redis.DB(0) // any access applies the time that has passed, to all databases
}

// skew jumps the node's clock by d.
func (m *memory) skew(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tickLocked()
	m.clock.set(m.clock.currentRate(), d)
	if d < 0 {
		// A real node stores the time of expiry, so a clock set back makes
		// keys live longer. miniredis stores what is left, and takes a step
		// back as no time at all: give each key the step.
		m.redis.FastForward(d)
	}
	m.tickLocked()
}

func (m *memory) setRate(rate float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tickLocked()
	m.clock.set(rate, 0)
}

func checkRate(rate float64) {
	if !(rate >= 0 && rate <= 1e6) {
		panic(fmt.Sprintf("redlocktest: clock rate %v: give a factor from 0 (stopped) to 1e6; 1 is true time", rate))
	}
}
