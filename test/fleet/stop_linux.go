package main

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// stopSelf stops the process here and now: a signal to the calling thread is taken before the call
// returns, one to the process a moment later perhaps.
func stopSelf() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGSTOP)
}
