package main

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent has the kernel kill the program when quorate is killed, which could not do it any more.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// The codes of a SIGCHLD that mean a stop.
const childStopped = 5

// watchStops calls stopped each time the program was stopped, until it has ended. It leaves the end to be
// waited for by others.
func (ch *child) watchStops(stopped func()) {
	pid := ch.cmd.Process.Pid
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil, info.Code != childStopped:
			return
		}
		// Taken note of, or it would be told again.
		if err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WNOHANG, nil); err == nil && ch.terminal.group() == pid {
			stopped()
		}
	}
}
