package redlock

import "time"

// Timers stand still while a machine sleeps; leases do not. While leases are held, a Locker
// looks now and then whether its clock has run ahead of the timers, and if so has every lease
// look at the clock. So a holder that blocks on its context learns of an end that came while
// the machine slept within sleepCheck of waking; one that asks the context's Err, at once.

const (
	sleepCheck = 250 * time.Millisecond
	sleepJump  = 50 * time.Millisecond // what scheduling alone does not explain
)

// wakefulness is what the clock and the timers said at the last look.
type wakefulness struct {
	clock  time.Duration
	timers time.Time
}

// watchSleep keeps the look-out going while there are leases. Guarded by mu.
func (l *Locker) watchSleep() {
	if l.vigil == nil {
		l.awake = wakefulness{l.settings.clock.Elapsed(), time.Now()}
		l.vigil = time.AfterFunc(sleepCheck, l.checkSleep)
	}
}

func (l *Locker) checkSleep() {
	now := wakefulness{l.settings.clock.Elapsed(), time.Now()}
	l.mu.Lock()
	slept := (now.clock - l.awake.clock) - now.timers.Sub(l.awake.timers)
	l.awake = now
	var leases []*Lease
	if slept > sleepJump {
		for lease := range l.held {
			leases = append(leases, lease)
		}
	}
	switch {
	case l.closed:
	case len(l.held) == 0:
		l.vigil = nil
	default:
		l.vigil.Reset(sleepCheck)
	}
	l.mu.Unlock()
	for _, lease := range leases {
		lease.tick()
	}
}
