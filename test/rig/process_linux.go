package rig

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill a client, stopped or not, when the harness dies.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
