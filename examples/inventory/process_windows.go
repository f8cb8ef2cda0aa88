package main

import (
	"errors"
	"os/exec"
	"syscall"
)

// canFreeze is false: there is no SIGSTOP.
const canFreeze = false

// detach keeps Ctrl-C from the replica: the parent ends it in order.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

func (c *child) freeze() error { return errors.ErrUnsupported }
func (c *child) thaw() error   { return errors.ErrUnsupported }
