package fencing

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/redlock"
)

// Conditions that a caller may want to tell apart with errors.Is. The errors that are returned
// wrap them and say what to do. What is wrong with a setting or an argument wraps
// redlock.ErrInvalidOption, and with a resource's name redlock.ErrInvalidName.
var (
	// ErrStaleToken: the gate has admitted a higher token for the resource. It is
	// redlock.ErrStaleToken: the same condition, found at the resource.
	ErrStaleToken = redlock.ErrStaleToken
	// ErrInvalidToken: a token that no lease can have.
	ErrInvalidToken = errors.New("invalid token")
	// ErrWaitLimit: the resource did not become free within WithWaitLimit.
	ErrWaitLimit = errors.New("wait limit reached")
	// ErrHoldLimit: the function did not end within WithHoldLimit.
	ErrHoldLimit = errors.New("hold limit reached")
	// ErrQueueFull: as many callers as WithQueueLimit allows wait for the resource already.
	ErrQueueFull = errors.New("queue full")
	// ErrNotBegun: the batch that was to have the item has not begun, so nothing was done for it.
	ErrNotBegun = errors.New("not begun")
	// ErrBelowFloor: the counter would have fallen below its floor.
	ErrBelowFloor = errors.New("value would fall below its floor")
	// ErrOtherSlot: a key of the data is not in the hash slot of the resource.
	ErrOtherSlot = errors.New("key is in another hash slot than the resource")
	// ErrTxConflict: the database undid the transaction because of others: run it again. It says
	// nothing about the token.
	ErrTxConflict = errors.New("transaction conflict")
	// ErrNoTable: the table of the fences does not exist.
	ErrNoTable = errors.New("no such table")
	// ErrNoRow: there is no row with this key, so there was nothing to update.
	ErrNoRow = errors.New("no such row")
	// ErrNoToken: a request has no token.
	ErrNoToken = errors.New("no token")
	// ErrInvalidHeader: the headers of a request that hold its tokens cannot be read.
	ErrInvalidHeader = errors.New("invalid header")
	// ErrDamagedFence: the fence at the gate is not a token.
	ErrDamagedFence = errors.New("damaged fence")
)

// A StaleError says which token a gate has refused, and why. It wraps ErrStaleToken.
type StaleError struct {
	Resource string
	Token    redlock.Token // refused
	Seen     redlock.Token // the highest that the gate has admitted; 0 if it does not tell
}

func (e *StaleError) Error() string {
	s := fmt.Sprintf("fencing: %q: %v %d", e.Resource, ErrStaleToken, e.Token)
	if e.Seen > 0 {
		s += fmt.Sprintf(": the gate has admitted %d", e.Seen)
	}
	return s + "; another holds the resource now, stop the work"
}

// Unwrap gives ErrStaleToken.
func (e *StaleError) Unwrap() error { return ErrStaleToken }

// A QueueError says which line was too long to join. It wraps ErrQueueFull.
type QueueError struct {
	Resource string
	Waiting  int // callers of this guard that wait for the resource, behind the one that is first
	Limit    int
}

func (e *QueueError) Error() string {
	return fmt.Sprintf("fencing: guard %q: %v: %d wait for it here and the limit is %d; turn the work away for now, or raise WithQueueLimit",
		e.Resource, ErrQueueFull, e.Waiting, e.Limit)
}

// Unwrap gives ErrQueueFull.
func (e *QueueError) Unwrap() error { return ErrQueueFull }

// A BelowFloorError says what a counter holds that could not be lowered. It wraps ErrBelowFloor.
type BelowFloorError struct {
	Key   string
	Value int64 // as it is, unchanged
	Delta int64 // asked for
	Floor int64
}

func (e *BelowFloorError) Error() string {
	return fmt.Sprintf("fencing: incrby %q by %d: %v: it holds %d and the floor is %d; nothing was written",
		e.Key, e.Delta, ErrBelowFloor, e.Value, e.Floor)
}

// Unwrap gives ErrBelowFloor.
func (e *BelowFloorError) Unwrap() error { return ErrBelowFloor }
