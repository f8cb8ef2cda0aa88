package redlock

import (
	"errors"
	"time"
)

// An Event tells what became of a lease, or of the wish for one, in this process.
type Event struct {
	Kind  EventKind
	Name  string
	Token Token         // 0 for Refused
	Wait  time.Duration // Acquired and Refused: from asking for the name to having it, or giving up
	Held  time.Duration // Ended: how long it was held
	Err   error         // Refused: why; Ended: how, a *LeaseError, or nil where it was released
}

// An EventKind says what an Event tells of.
type EventKind string

// The kinds.
const (
	Acquired EventKind = "acquired"
	Refused  EventKind = "refused" // the caller has no lease: it is taken, there is no quorum, the context is done
	Ended    EventKind = "ended"   // a lease that was acquired is over
)

// WithObserver sets a function that is told of each lease of this Locker, and of each that was asked
// for in vain: for monitoring by name, of which there are too many for metrics. It is called by several
// goroutines, which wait for it: it must be quick, and must not call the Locker. A lease's Acquired is
// told by the goroutine that asked for it, which may be after the Ended of one that was lost at once.
// Default none.
func WithObserver(f func(Event)) Option {
	return option(func(s *settings) { s.observer = f })
}

// observeWait tells how asking for a name has ended.
func (s *settings) observeWait(name string, lease *Lease, waited time.Duration, err error) {
	if s.observer == nil {
		return
	}
	e := Event{Kind: Refused, Name: name, Wait: waited, Err: err}
	if lease != nil {
		e.Kind, e.Token = Acquired, lease.token
	}
	s.observer(e)
}

// observeEnd tells how a lease has ended.
func (s *settings) observeEnd(l *Lease, held time.Duration, over *LeaseError) {
	if s.observer == nil {
		return
	}
	e := Event{Kind: Ended, Name: l.name, Token: l.token, Held: held}
	if !errors.Is(over.Err, ErrReleased) {
		e.Err = over
	}
	s.observer(e)
}
