package main

import (
	"os"
	"syscall"
)

var (
	// endingSignals ask a process to end: Ctrl-C, and the closing of the window.
	endingSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}
	otherSignals  []os.Signal
)

// shell is how the system's shell runs a command.
func shell(command string) []string { return []string{"cmd", "/C", command} }
