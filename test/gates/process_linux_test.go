package gates

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// ordinary has a command run as an ordinary user, which is what both servers ask for, and has the
// kernel kill it when the tests die, whatever of. It returns the user's number, or -1 where the tests
// run as an ordinary user themselves.
func ordinary(cmd *exec.Cmd) int {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		return -1
	}
	uid, gid := 65534, 65534
	if nobody, err := user.Lookup("nobody"); err == nil {
		uid, _ = strconv.Atoi(nobody.Uid)
		gid, _ = strconv.Atoi(nobody.Gid)
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return uid
}
