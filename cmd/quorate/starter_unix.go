//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// starterArgument, before a descriptor, a path and the arguments of a program, has a process be a starter.
const starterArgument = "starter-of-programs"

// word is what a starter waits for, and answers. The number of an error comes behind it if it cannot become the program.
const word = "."

// A starter is a quorate that waits for a word from the quorate that started it, and then becomes the program. So
// the program does nothing before others know of its process group. If no word can come any more, it ends.
type starter struct {
	path string // of quorate itself
	// given are the descriptors, from 3 on, that quorate was started with. They are for the program, and the
	// starter's own comes behind them.
	given []*os.File
}

func init() {
	// That a program is killed with its parent is a matter of the thread that becomes the program, and was said to the
	// first. An init function runs on that.
	if len(os.Args) > 1 && os.Args[1] == starterArgument {
		runtime.LockOSThread()
	}
}

func newStarter() (starter, error) {
	path := "/proc/self/exe" // leads to it even when its file was replaced meanwhile, by a newer version
	if _, err := os.Stat(path); err != nil {
		if path, err = os.Executable(); err != nil {
			return starter{}, err
		}
	}
	s := starter{path: path}
	for fd := uintptr(3); inheritable(fd); fd++ {
		s.given = append(s.given, os.NewFile(fd, fmt.Sprintf("descriptor %d", fd)))
	}
	return s, nil
}

func inheritable(fd uintptr) bool {
	flags, err := unix.FcntlInt(fd, unix.F_GETFD, 0)
	return err == nil && flags&unix.FD_CLOEXEC == 0
}

// start starts cmd. It calls known with the process group before the program begins.
func (s starter) start(cmd *exec.Cmd, known func(group int)) error {
	ours, theirs, err := newLine()
	if err != nil {
		return err
	}
	defer func() { _ = ours.Close() }()
	path := cmd.Path
	cmd.Args = append([]string{"quorate", starterArgument, strconv.Itoa(3 + len(s.given)), path}, cmd.Args...)
	cmd.Path = s.path
	cmd.ExtraFiles = append(slices.Clone(s.given), theirs)
	err = cmd.Start()
	_ = theirs.Close()
	if err != nil {
		return errors.New("start another quorate for it: " + err.Error()) // whose error is not about the program
	}
	known(cmd.Process.Pid)
	_, _ = ours.Write([]byte(word)) // and see below, if somebody has killed the starter
	answer, _ := io.ReadAll(ours)   // ends when the starter has become the program
	text, heard := strings.CutPrefix(string(answer), word)
	if heard && text == "" {
		return nil
	}
	_ = cmd.Wait()
	if code, err := strconv.Atoi(text); heard && err == nil {
		return &os.PathError{Op: "exec", Path: path, Err: syscall.Errno(code)}
	}
	return fmt.Errorf("the quorate that was to become it has ended: %s", cmd.ProcessState)
}

// newLine gives the two ends of a line. Nobody inherits them unasked.
func newLine() (ours, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	unix.CloseOnExec(ends[0])
	unix.CloseOnExec(ends[1])
	return os.NewFile(uintptr(ends[0]), "line to a starter"), os.NewFile(uintptr(ends[1]), "line of a starter"), nil
}

// beStarter is what a starter does, until it is the program.
func beStarter(descriptor, path string, args []string) (exitCode int) {
	fd, err := strconv.Atoi(descriptor)
	if err != nil {
		return exitUsage
	}
	unix.CloseOnExec(fd)
	line := os.NewFile(uintptr(fd), "line")
	if _, err := io.ReadFull(line, make([]byte, len(word))); err != nil {
		return exitFailed
	}
	if _, err := line.WriteString(word); err != nil {
		return exitFailed
	}
	err = syscall.Exec(path, args, os.Environ())
	var code syscall.Errno
	if errors.As(err, &code) {
		_, _ = fmt.Fprint(line, int(code))
	}
	return exitCannotRun
}
