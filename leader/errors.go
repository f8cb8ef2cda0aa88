package leader

import (
	"errors"
	"fmt"
)

// Conditions that a caller may want to tell apart with errors.Is. Settings that make no sense
// are told by those of package redlock: ErrInvalidOption, ErrInvalidName, ErrTTLTooShort and
// ErrTTLTooLong.
var (
	// ErrNoLeader: nobody leads at the moment.
	ErrNoLeader = errors.New("no leader")
	// ErrNotLeader: this elector does not lead.
	ErrNotLeader = errors.New("not the leader")
	// ErrResigned: the cause of a term's context that Resign has ended.
	ErrResigned = errors.New("leader resigned")
	// ErrTransferred: the cause of a term's context that Transfer has ended.
	ErrTransferred = errors.New("leadership transferred")
	// ErrHeirAbsent: Transfer has ended the term, and another than the one it named leads now.
	ErrHeirAbsent = errors.New("the named successor did not take over")
	// ErrUnhealthy: the cause of a term's context that a failed health check has ended; it comes
	// with the check's own error.
	ErrUnhealthy = errors.New("health check failed")
	// ErrTermLimit: the cause of a term's context that has lasted for WithMaxTerm.
	ErrTermLimit = errors.New("term limit reached")
	// ErrStuck: the leading function still runs though its context ended long ago.
	ErrStuck = errors.New("the leading function ignores its context")
	// ErrRunning: Run was called while another Run of this Elector has not returned.
	ErrRunning = errors.New("already running")
)

var (
	errUnpublished  = errors.New("the term could not be published")
	errExited       = errors.New("the leading function called runtime.Goexit")
	errUnchecked    = errors.New("it has not been asked yet")
	errExitedCheck  = errors.New("it called runtime.Goexit")
	errCheckHangs   = errors.New("it did not return in time")
	errNotEligible  = errors.New("not eligible")
	errHeirGoesOver = errors.New("the leader before has named another to follow")
)

// A panicError is a panic of a function of the caller's.
type panicError struct {
	what  string
	value any
	stack []byte
}

func (e *panicError) Error() string {
	return fmt.Sprintf("%s panicked: %v\n\n%s", e.what, e.value, e.stack)
}

// Unwrap gives the error that was the panic's value, if it was one.
func (e *panicError) Unwrap() error {
	err, _ := e.value.(error)
	return err
}
