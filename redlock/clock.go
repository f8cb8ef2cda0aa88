package redlock

import "time"

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
// Go's monotonic clock stands still while a machine sleeps, and a lease does not. So elapsed
// time is the largest of what the monotonic clock says and what a clock that counts sleep says:
// CLOCK_BOOTTIME on Linux, the wall clock elsewhere. There, a wall clock that is set forward
// can end a lease early, which is the safe side.
type systemClock struct {
	origin time.Time
	awake  time.Duration // sleepClock at the origin
}

func newSystemClock() *systemClock {
	origin := time.Now()
	return &systemClock{origin: origin, awake: sleepClock()}
}

func (c *systemClock) Now() time.Time { return time.Now() }

func (c *systemClock) Elapsed() time.Duration {
	return max(time.Since(c.origin), sleepClock()-c.awake)
}
