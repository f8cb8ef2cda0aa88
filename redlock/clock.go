package redlock

import (
	"sync"
	"time"
)

// A Clock tells the two kinds of time that a Locker needs. The default is the system's. Another
// one serves tests: in a testing/synctest bubble use that of package redlocktest, because what
// the system says of the time asleep is real even there.
type Clock interface {
	// Now is the wall clock. It proposes tokens and is shown to people; nothing depends on it
	// being right.
	Now() time.Time
	// Elapsed is the time since some fixed moment, by a clock that is never set and that also
	// runs while the machine sleeps. All validity is measured by it.
	Elapsed() time.Duration
}

// systemClock is the machine's clock.
//
// Go's monotonic clock stands still while a machine sleeps, and a lease does not. So time has
// passed between two readings if either the monotonic clock says so, or a clock that counts
// sleep: CLOCK_BOOTTIME on Linux, the wall clock elsewhere. There, a wall clock that is set
// forward ends leases early, which is the safe side, and one that is set back changes nothing.
type systemClock struct {
	origin time.Time
	asleep func() time.Duration // a clock that counts sleep

	mu      sync.Mutex
	elapsed time.Duration
	mono    time.Duration // at the last reading
	counted time.Duration // by asleep, at the last reading
}

func newSystemClock() *systemClock {
	return &systemClock{origin: time.Now(), asleep: sleepClock, counted: sleepClock()}
}

func (c *systemClock) Now() time.Time { return time.Now() }

func (c *systemClock) Elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	mono, counted := time.Since(c.origin), c.asleep()
	c.elapsed += max(mono-c.mono, counted-c.counted)
	c.mono, c.counted = mono, counted
	return c.elapsed
}
