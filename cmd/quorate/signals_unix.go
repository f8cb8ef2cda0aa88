//go:build unix

package main

import (
	"os"
	"syscall"
)

var (
	// endingSignals ask a process to end.
	endingSignals = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}
	// otherSignals mean something to programs, and nothing to quorate.
	otherSignals = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH}
)

// shell is how the system's shell runs a command.
func shell(command string) []string { return []string{"/bin/sh", "-c", command} }
