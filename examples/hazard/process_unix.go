//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

const canFreeze = true

// detach gives the holder a process group of its own. Should the parent die while the holder is
// stopped, the group is orphaned with a stopped member, to which POSIX has the system send SIGHUP and
// SIGCONT: so not even a stopped holder is left behind.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

func (c *child) freeze() error { return c.cmd.Process.Signal(syscall.SIGSTOP) }
func (c *child) thaw() error   { return c.cmd.Process.Signal(syscall.SIGCONT) }
