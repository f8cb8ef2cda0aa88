//go:build unix

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// A guard is a second process of quorate's. It kills programs, and what they have started, where quorate cannot
// do it any more: when that was killed, and when it is stopped, or stuck, beyond the end of a lease.
type guard struct {
	starter starter
	cmd     *exec.Cmd
	lines   io.WriteCloser
}

// startGuard starts the guard of this process.
func startGuard() (*guard, error) {
	s, err := newStarter()
	if err != nil {
		return nil, fmt.Errorf("start a guard: %w", err)
	}
	path, err := os.Executable() // which is what it is listed as
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		path = s.path
	}
	cmd := exec.Command(path, guardArgument)
	cmd.Args[0] = "quorate"
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what is typed at the terminal is not for it
	lines, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start a guard: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a guard: %w", err)
	}
	return &guard{s, cmd, lines}, nil
}

// start starts a program of which the guard knows before it begins, and for how long it may live then.
func (g *guard) start(cmd *exec.Cmd, left func() time.Duration) error {
	return g.starter.start(cmd, func(group int) { g.allow(group, left()) })
}

// allow lets a program live for that long from now, unless it is told otherwise by then.
func (g *guard) allow(group int, d time.Duration) { g.tell(group, max(0, d.Milliseconds())) }

// forget has a program be no concern any more.
func (g *guard) forget(group int) { g.tell(group, -1) }

// tell writes a line in one piece. It fails when somebody has killed the guard.
func (g *guard) tell(group int, left int64) { _, _ = fmt.Fprintf(g.lines, "%d %d\n", group, left) }

func (g *guard) close() {
	_ = g.lines.Close()
	_ = g.cmd.Wait()
}

// besides has a process be what quorate needs besides itself, if these are the arguments of one.
func besides(args []string) (exitCode int, is bool) {
	switch {
	case len(args) == 2 && args[1] == guardArgument:
		beGuard()
		return 0, true
	case len(args) > 4 && args[1] == starterArgument:
		return beStarter(args[2], args[3], args[4:]), true
	}
	return 0, false
}

// beGuard is what the guard does.
func beGuard() {
	// Who ends quorate, with all its processes, wants it to end its programs first.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	runGuard(os.Stdin, func(group int) { _ = syscall.Kill(-group, syscall.SIGKILL) })
}
