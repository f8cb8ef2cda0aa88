package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/quorate/quorate/redlock"
)

// Exit codes. Those of a program that quorate runs are passed through, so its own are out of their way.
const (
	exitOK          = 0
	exitFailed      = 1   // something else; doctor: the fleet has an error
	exitUsage       = 2   // the command line makes no sense: nothing was done
	exitTaken       = 120 // another holds the name, and the time to wait was over
	exitNoQuorum    = 121 // too few nodes could be asked, or count
	exitLeaseLost   = 122 // the lease ended while the program ran, which was ended
	exitCannotRun   = 126 // the program was found and could not be started
	exitNotFound    = 127 // the program was not found
	exitSignal      = 128 // plus its number: the program, or quorate itself, was ended by a signal
	exitInterrupted = exitSignal + int(syscall.SIGINT)
	exitPipe        = exitSignal + 13 // SIGPIPE, which not all systems have: nobody reads the output any more
)

// exitCodes is what help and the man page say of them.
var exitCodes = []struct{ code, meaning string }{
	{"0", "done; run and lead --once: the program ended with 0; lead and cron: told to stop, and all has ended in order"},
	{"1", "anything else, such as an error that doctor found"},
	{"2", "the command line makes no sense, or two of the nodes are one server: nothing was done"},
	{"120", "another holds the name, and the time to wait was over"},
	{"121", "too few nodes could be asked, or count"},
	{"122", "the lease ended while the program ran, and so the program was ended"},
	{"126", "the program was found and could not be started"},
	{"127", "the program was not found"},
	{"128+n", "the program, or quorate itself, was ended by signal n; 141: nobody reads the output any more"},
	{"other", "that of the program which quorate ran"},
}

// A usageError is about the command line.
type usageError struct{ err error }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// A failure is an error with an exit code that cannot be seen from it.
type failure struct {
	code int
	err  error
}

func failuref(code int, format string, args ...any) error {
	return &failure{code, fmt.Errorf(format, args...)}
}

func (e *failure) Error() string { return e.err.Error() }
func (e *failure) Unwrap() error { return e.err }

// A status is an exit code that is no mishap of quorate's, or whose story has been told: nothing more is printed.
type status int

func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// signalled is the cause of a context that a signal has ended.
type signalled struct{ os.Signal }

func (s signalled) Error() string { return "ended by signal " + s.String() }

// code is what a shell calls a process that the signal ended.
func (s signalled) code() int {
	if n, ok := s.Signal.(syscall.Signal); ok {
		return exitSignal + int(n)
	}
	return exitInterrupted
}

// exitCode is what the process ends with.
func exitCode(err error) int {
	var s status
	var usage *usageError
	var failed *failure
	var signal signalled
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &s):
		return int(s)
	case errors.As(err, &failed):
		return failed.code
	case errors.As(err, &signal):
		return signal.code()
	case errors.As(err, &usage), errors.Is(err, redlock.ErrNoNodes), errors.Is(err, redlock.ErrSameServer),
		errors.Is(err, redlock.ErrInvalidName), errors.Is(err, redlock.ErrInvalidOption),
		errors.Is(err, redlock.ErrTTLTooLong), errors.Is(err, redlock.ErrTTLTooShort):
		return exitUsage
	case errors.Is(err, redlock.ErrLeaseLost), errors.Is(err, redlock.ErrLeaseExpired), errors.Is(err, redlock.ErrExtensionLimit):
		return exitLeaseLost
	case errors.Is(err, redlock.ErrNoQuorum), errors.Is(err, redlock.ErrQuarantined), errors.Is(err, redlock.ErrNoValidity):
		return exitNoQuorum
	case errors.Is(err, redlock.ErrTaken):
		return exitTaken
	// A node that hangs up is in an error of the nodes, and above.
	case errors.Is(err, syscall.EPIPE):
		return exitPipe
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitFailed
}
