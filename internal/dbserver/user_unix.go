//go:build unix

package dbserver

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// ordinary is a user who is not root, which is what both servers ask for; false where this process is
// that of such a user itself.
func ordinary() (uid, gid int, needed bool) {
	if os.Getuid() != 0 {
		return 0, 0, false
	}
	uid, gid = 65534, 65534
	if nobody, err := user.Lookup("nobody"); err == nil {
		u, badUID := strconv.Atoi(nobody.Uid)
		g, badGID := strconv.Atoi(nobody.Gid)
		// macOS has -2 for it.
		if badUID == nil && badGID == nil && u > 0 && g > 0 {
			uid, gid = u, g
		}
	}
	return uid, gid, true
}

// asOrdinaryUser has a command run as an ordinary user.
func asOrdinaryUser(cmd *exec.Cmd) {
	if uid, gid, needed := ordinary(); needed {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
}

// giveAway makes the ordinary user the owner of a directory.
func giveAway(dir string) error {
	if uid, gid, needed := ordinary(); needed {
		return os.Chown(dir, uid, gid)
	}
	return nil
}
