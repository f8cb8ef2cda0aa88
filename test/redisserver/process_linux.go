package redisserver

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill the child when the test binary dies, also of SIGKILL,
// of a panic or of go test's own timeout.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

func tieToParent(int) (release func()) { return func() {} }

func (p *process) pause() error  { return p.cmd.Process.Signal(syscall.SIGSTOP) }
func (p *process) resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// paused tells whether the kernel has carried out a SIGSTOP, which kill(2) only asks for:
// until then a server on another core still answers.
func (p *process) paused() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid()))
	if err != nil {
		return false
	}
	// The name, in brackets, may hold anything; the state follows the last bracket.
	_, rest, ok := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	return ok && len(rest) > 0 && rest[0] == 'T'
}
