package leader

import (
	"runtime/debug"
	"time"
)

// An Event is something that has happened to an Elector: see WithObserver.
type Event struct {
	Kind EventKind
	// Name is that of the election.
	Name string
	// Term is what it happened to. It is zero for StoodBack, where no term has begun.
	Term Term
	// Outcome is how a term ended, for Ended: one of those in the package documentation,
	// "Telemetry".
	Outcome string
	// Err is why: for Ended, what the function returned or what ended its context; for Stuck it wraps
	// ErrStuck.
	Err error
	// Lasted is for how long the function has run, for Ended and Stuck.
	Lasted time.Duration
}

// An EventKind is a kind of Event.
type EventKind string

// The kinds of events. A term has one Began, perhaps a Stuck, and one Ended, in this order, and none
// of the next term comes between. One that could not be published has none of them.
const (
	// Began: the leading function is called now.
	Began EventKind = "began"
	// Stuck: its context has ended, and the function has not returned within WithStopGrace.
	Stuck EventKind = "stuck"
	// Ended: the function has returned, and the lease was released.
	Ended EventKind = "ended"
	// StoodBack: the elector has won the lease and given it back without a term, because the leader
	// before has named another to follow, or because the elector was no longer healthy or eligible.
	StoodBack EventKind = "stood back"
)

// tell calls the observer. An observer that panics is no reason to end a term.
func (e *Elector) tell(ev Event) {
	if e.settings.observer == nil {
		return
	}
	ev.Name = e.name
	defer func() {
		if v := recover(); v != nil {
			err := &panicError{what: "observer", value: v, stack: debug.Stack()}
			e.settings.logger.Error("leader: the observer panicked", "name", e.name, "event", string(ev.Kind), "error", err)
		}
	}()
	e.settings.observer(ev)
}
