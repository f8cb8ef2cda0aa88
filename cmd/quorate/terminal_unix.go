//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A terminal is lent to a program that may want to read it. The program has a process group of its own, so
// that all of it can be killed, and a terminal lets only one group read: the others are stopped.
type terminal struct {
	fd  int
	own int // our process group, which has it otherwise
}

// terminal is the one that quorate has, at both ends: in a pipeline the others may need it. It is nil where
// there is none, or where quorate runs in the background.
func (c *console) terminal() *terminal {
	in, ok := c.in.(*os.File)
	out, also := c.out.(*os.File)
	if !ok || !also {
		return nil
	}
	own := unix.Getpgrp()
	for _, f := range []*os.File{in, out} {
		if group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP); err != nil || group != own {
			return nil
		}
	}
	return &terminal{int(in.Fd()), own}
}

// give lets the program read the terminal, and get its Ctrl-C and Ctrl-Z. When that stops the program, quorate
// stops as well, so that the shell goes on; when it is continued the program goes on, if it still may.
func (t *terminal) give(ch *child, may func() bool) {
	if t == nil {
		return
	}
	signal.Ignore(syscall.SIGTTOU) // or taking it back, or a message, would stop us
	t.lend(ch)
	go ch.watchStops(func() {
		t.suspend(ch)
		if may() {
			t.lend(ch)
		}
	})
}

// lend makes the program's group the terminal's, unless quorate itself has gone into the background.
func (t *terminal) lend(ch *child) {
	if t.group() == t.own {
		_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, ch.cmd.Process.Pid) // has ended, if this fails
	}
	ch.signal(syscall.SIGCONT) // also where it has tried to read before, and was stopped
}

// suspend stops quorate, as Ctrl-Z would have if the terminal had been its own, until it is continued.
func (t *terminal) suspend(ch *child) {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	t.takeBack(ch)
	_ = unix.Kill(0, syscall.SIGTSTP)
	select {
	case <-continued:
	case <-time.After(time.Second): // nobody is there who could continue us, and so we were not stopped
	}
}

// takeBack ends what lend has done.
func (t *terminal) takeBack(ch *child) {
	if t != nil && t.group() == ch.cmd.Process.Pid {
		_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, t.own)
	}
}

func (t *terminal) group() int {
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	if err != nil {
		return -1
	}
	return group
}
