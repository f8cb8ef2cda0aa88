package gocronlock

import "errors"

// Conditions that may be told apart with errors.Is. Where a lock is refused because another run
// goes on, or too few nodes can be reached, the error is that of package redlock: ErrTaken,
// ErrNoQuorum.
var (
	// ErrClaimed: another replica has run this tick, or runs it.
	ErrClaimed = errors.New("the tick has been claimed")
	// ErrNotLeader: another replica leads, or nobody does.
	ErrNotLeader = errors.New("not the leader")
	// ErrRegister: the state of the lease is not that of a Locker of this package. Another
	// program uses the name.
	ErrRegister = errors.New("the lease's state is no list of claims")
)
