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
	// ErrRunning: Run was called while another Run of this Elector has not returned.
	ErrRunning = errors.New("already running")
)

var (
	errUnpublished = errors.New("the term could not be published")
	errExited      = errors.New("the leading function called runtime.Goexit")
)

// A panicError is a panic of the leading function.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string {
	return fmt.Sprintf("leading function panicked: %v\n\n%s", e.value, e.stack)
}

// Unwrap gives the error that was the panic's value, if it was one.
func (e *panicError) Unwrap() error {
	err, _ := e.value.(error)
	return err
}
