//go:build unix

package rig

import "syscall"

// What stops a process, and has it go on.
const (
	SigStop = syscall.SIGSTOP
	SigCont = syscall.SIGCONT
)
