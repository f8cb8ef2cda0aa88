package redisserver

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// process is one running redis-server. Its goroutine ends with it, so that a test which
// looks for leaked goroutines after its servers are gone finds none.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed once the process is gone and has been waited for
}

// startProcess runs the binary with its output appended to the file at logPath, and env added to
// the environment.
func startProcess(binary, logPath string, env []string, args ...string) (*process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the server's log: %w", err)
	}
	// The child has its own descriptor once it runs.
	defer func() { _ = log.Close() }()

	cmd := exec.Command(binary, args...)
	// A file, not a writer: with a writer, Wait would wait for a copying goroutine, and so
	// for every descendant that holds the pipe.
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), env...)
	dieWithParent(cmd)

	p := &process{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(p.exited)
		// Linux sends the parent-death signal when the thread that forked ends, not the
		// process: so this thread stays with the child until the child is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		release := tieToParent(cmd.Process.Pid)
		started <- nil
		_ = cmd.Wait() // how it ended is in the log; that it ended is all we need
		release()
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// running tells whether the process has not been seen to end.
func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// kill ends the process at once, frozen or not, and waits until it is gone. Killing a
// process that has ended does nothing.
func (p *process) kill() {
	// os.Process refuses to signal a process that has been waited for, so a process id that
	// the system has given to somebody else is never hit.
	_ = p.cmd.Process.Kill()
	<-p.exited
}
