package scheduler

import (
	"errors"
	"fmt"
)

// Conditions that a caller may want to tell apart with errors.Is. The errors that are returned
// wrap them and say which job and what to do. What goes wrong at the nodes comes as an error of
// package redlock.
var (
	// ErrInvalidJob: a job has no name, a name that cannot be used, or no function.
	ErrInvalidJob = errors.New("invalid job")
	// ErrDuplicateJob: the Scheduler already has a job of this name.
	ErrDuplicateJob = errors.New("duplicate job")
	// ErrInvalidSpec: the spec cannot be read, or never comes due.
	ErrInvalidSpec = errors.New("invalid spec")
	// ErrInvalidOption: a setting, or a combination of settings, makes no sense.
	ErrInvalidOption = errors.New("invalid option")
	// ErrUnknownJob: neither this Scheduler nor the nodes know the job.
	ErrUnknownJob = errors.New("unknown job")
	// ErrTooManyRequests: so many triggers or backfills of the job wait that there is no room for
	// another.
	ErrTooManyRequests = errors.New("too many requests")
	// ErrSteps: a step has no name, or the steps of a run are too large.
	ErrSteps = errors.New("invalid step")
	// ErrRunning: Run was called while it runs.
	ErrRunning = errors.New("already running")

	// ErrTimeout is the cause of a run's context, and the error of its event, when the run took
	// longer than WithTimeout.
	ErrTimeout = errors.New("timeout of the run exceeded")
	// ErrDrainTimeout is the cause of a run's context, and what Run returns, when runs had to be
	// cancelled because they went on for longer than WithDrainTimeout.
	ErrDrainTimeout = errors.New("drain timeout exceeded")
	// ErrRegister: the state under a job's name is none that this version can read. The job does
	// not run, because nobody can tell which of its ticks were started.
	ErrRegister = errors.New("unreadable register")
)

// A PanicError is the error of a run that panicked, or ended its goroutine by runtime.Goexit,
// where Value is nil.
type PanicError struct {
	Value any    // what was given to panic
	Stack []byte // of the goroutine that panicked
}

func (e *PanicError) Error() string {
	if e.Value == nil {
		return "the job's function called runtime.Goexit; return instead"
	}
	return fmt.Sprintf("panic: %v\n\n%s", e.Value, e.Stack)
}

// Unwrap gives the value of the panic if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
