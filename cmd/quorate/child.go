package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"time"

	"github.com/quorate/quorate/redlock"
)

// A program is what a command line names behind "--", looked up once.
type program struct {
	path string
	args []string // its name first, as it was given
}

// commandLine gives what stands before "--" and the program behind it. The parser takes flags from
// anywhere before it, and leaves what follows alone.
func (c *console) commandLine(given []string, names ...string) (values []string, p program, err error) {
	i := slices.Index(c.args, "--")
	if i < 0 {
		return nil, p, usagef("put -- before the program that is to be run, so that its flags are its own: … -- PROGRAM [ARGUMENT...]")
	}
	argv := c.args[i+1:]
	n := len(given) - len(argv)
	if n < 0 || !slices.Equal(given[n:], argv) {
		return nil, p, usagef("there is more than one --, or one where a flag's value should be")
	}
	switch {
	case n < len(names):
		return nil, p, usagef("%s is missing: it stands before --", names[n])
	case n > len(names):
		return nil, p, usagef("%q is one argument too many: before -- stand flags and %s alone (is something not quoted?)", given[len(names)], andList(names))
	case len(argv) == 0:
		return nil, p, usagef("there is no program behind --")
	}
	p, err = findProgram(argv)
	return given[:n], p, err
}

func andList(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return names[0] + " and " + names[1]
}

// findProgram looks the program up before anything is acquired for it.
func findProgram(argv []string) (program, error) {
	path, err := exec.LookPath(argv[0])
	var failed *exec.Error
	if errors.As(err, &failed) {
		err = failed.Err // the name is said here
	}
	switch {
	case err == nil:
		return program{path, argv}, nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return program{}, failuref(exitNotFound, "program %q was not found", argv[0])
	}
	return program{}, failuref(exitCannotRun, "program %q cannot be run: %w", argv[0], err)
}

// A child is a program that runs, with what it has started in its turn, as far as that is in its
// process group.
type child struct {
	cmd      *exec.Cmd
	terminal *terminal // that it was given, or nil
	ended    chan struct{}
	err      error         // once ended
	reported chan struct{} // closed when the guard knows of the end
}

// A start says how a program is run.
type start struct {
	program
	env []string // beside quorate's own
	// interactive programs have quorate's stdin, and its terminal if there is one; others read nothing.
	interactive bool
	lease       *redlock.Lease // under which it runs
	reserve     time.Duration  // see reserve
	guard       *guard
}

// left is how long the program may live from now on unless the lease is extended, as the guard is told.
func (s start) left() time.Duration { return s.lease.Remaining() - s.reserve*3/4 }

// start runs a program. Whoever calls it waits for its end.
func (c *console) start(s start) (*child, error) {
	cmd := &exec.Cmd{Path: s.path, Args: s.args, Stdout: c.out, Stderr: c.err}
	cmd.Env = append(os.Environ(), s.env...)
	cmd.WaitDelay = 5 * time.Second // of no effect unless quorate's own streams are no files
	setGroup(cmd)
	ch := &child{cmd: cmd, ended: make(chan struct{}), reported: make(chan struct{})}
	if s.interactive {
		cmd.Stdin = c.in
		ch.terminal = c.terminal()
	}
	started := make(chan error)
	go func() {
		// The kernel ends the program when the thread that started it ends, so that lives as long.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := s.guard.start(cmd, s.left)
		started <- err
		if err != nil {
			return
		}
		ch.err = cmd.Wait()
		close(ch.ended)
	}()
	if err := <-started; err != nil {
		if cmd.Process != nil {
			s.guard.forget(cmd.Process.Pid)
		}
		code := exitCannotRun
		if errors.Is(err, fs.ErrNotExist) { // or the interpreter that its first line names
			code = exitNotFound
		}
		return nil, failuref(code, "program %q cannot be started: %w", s.args[0], err)
	}
	go ch.report(s)
	ch.terminal.give(ch, func() bool { return s.lease.Context().Err() == nil })
	return ch, nil
}

// report tells the guard how long the program may live, again and again. The guard comes last: when neither
// the program has ended nor quorate has killed it.
func (ch *child) report(s start) {
	group := ch.cmd.Process.Pid
	renew := time.NewTicker(max(s.reserve, time.Millisecond)) // several times for each extension
	defer renew.Stop()
	for {
		if s.lease.Remaining() > 0 {
			s.guard.allow(group, s.left())
		}
		select {
		case <-ch.ended:
			s.guard.forget(group)
			close(ch.reported)
			return
		case <-renew.C:
		}
	}
}

// wait waits for the end of the program itself.
func (ch *child) wait() {
	<-ch.ended
	<-ch.reported
	ch.terminal.takeBack(ch)
}

// code is the exit code of the program, as a shell tells it.
func (ch *child) code() int {
	if ch.cmd.ProcessState == nil { // the wait itself has failed
		return exitFailed
	}
	return codeOf(ch.cmd.ProcessState)
}

// gone reports whether the program has ended, and all that is in its process group.
func (ch *child) gone() bool {
	select {
	case <-ch.ended:
		return !ch.groupLives()
	default:
		return false
	}
}

// reserve is how long before the end of the validity a program is killed that has not ended by itself, so
// that it is dead by then.
func reserve(ttl time.Duration) time.Duration { return ttl / 20 }

// end asks the program to end, and kills it, with what it has started, when the grace is over, when the
// lease is about to be, or when somebody is in a hurry. It returns when nothing is left in its group, or
// the program has been killed and waited for; what it had started is killed with it, and has nobody to wait for.
func (ch *child) end(lease *redlock.Lease, grace, reserve time.Duration, hurry <-chan struct{}) (killed bool) {
	// A lease that the nodes say is another's has nothing left to wait for: then the grace alone counts.
	covered := lease.Remaining() > 0
	ch.terminate()
	over := time.NewTimer(grace)
	defer over.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !ch.gone() && !killed {
		select {
		case <-over.C:
			killed = true
		case <-hurry:
			killed = true
		case <-look.C:
			killed = covered && lease.Remaining() <= reserve
		}
	}
	if killed {
		ch.kill()
	}
	ch.wait()
	return killed
}

// environment is what a program is told of its lease.
func environment(pairs ...string) []string {
	env := make([]string, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		env = append(env, "QUORATE_"+pairs[i]+"="+pairs[i+1])
	}
	return env
}

// endOf says how a program ended.
func (ch *child) endOf() string {
	if ch.cmd.ProcessState == nil {
		return fmt.Sprint(ch.err)
	}
	return ch.cmd.ProcessState.String() // "exit status 3", "signal: killed"
}
