//go:build unix && !linux

package dbserver

import (
	"os/exec"
	"strconv"
	"syscall"
)

func dieWithParent(*exec.Cmd) {}

// tieToParent is the parent-death signal for systems that have none: a shell that reads from a pipe
// which only this process holds open. However that dies, the pipe closes, and the shell kills the
// server.
func tieToParent(pid int) (release func()) {
	watch := exec.Command("/bin/sh", "-c", `cat >/dev/null; kill -9 "$0"`, strconv.Itoa(pid))
	// Out of the terminal's process group: ctrl-C must not end the watcher before its work.
	watch.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := watch.StdinPipe()
	if err != nil {
		return func() {}
	}
	if err := watch.Start(); err != nil {
		return func() {}
	}
	return func() {
		// The watcher goes first: with the pipe closed before it, it would kill whatever process has
		// been given the server's number by now.
		_ = watch.Process.Kill()
		_ = watch.Wait()
		_ = pipe.Close()
	}
}
