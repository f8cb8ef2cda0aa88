//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// setGroup gives the program a process group of its own, so that signals reach what it starts as well, and
// nothing else.
func setGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
}

// signal sends a signal to the program and what it has started.
func (ch *child) signal(s os.Signal) {
	if n, ok := s.(syscall.Signal); ok {
		_ = syscall.Kill(-ch.cmd.Process.Pid, n) // has ended, if this fails
	}
}

// terminate has a program that is stopped go on, so that it hears of it.
func (ch *child) terminate() {
	ch.signal(syscall.SIGTERM)
	ch.signal(syscall.SIGCONT)
}

func (ch *child) kill() { ch.signal(syscall.SIGKILL) }

// groupLives reports whether anything is left in the process group.
func (ch *child) groupLives() bool {
	return !errors.Is(syscall.Kill(-ch.cmd.Process.Pid, 0), syscall.ESRCH)
}

func codeOf(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitSignal + int(status.Signal())
	}
	return state.ExitCode()
}
