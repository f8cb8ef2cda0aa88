package dbserver

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill a command when this process dies, whatever of.
func dieWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

func tieToParent(int) (release func()) { return func() {} }
