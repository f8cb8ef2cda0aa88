package rig

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// A Process is a client process as the harness sees it. The zero value is one that was never
// started.
type Process struct {
	// Stops are the stretches of time in which it was stopped, for those who look at them when it
	// has ended.
	Stops []Window

	cmd    *exec.Cmd
	stdin  io.WriteCloser
	exited chan struct{} // closed when it is gone and its events are all read

	mu     sync.Mutex
	killed int64 // stamp, 0 if it was not
}

// A Window is a stretch of time, from stamp to stamp. An End of 0 is not over yet.
type Window struct{ Begin, End int64 }

// A Spec says how a Process is started.
type Spec struct {
	// Env is the variable of the environment that holds Config, as JSON: where it is set, the
	// binary is a client.
	Env    string
	Config any
	// Log is the file to which its standard error is added.
	Log string
}

// Start starts this binary again, as a client. What it reports goes to handle, a line each, on one
// goroutine.
func (p *Process) Start(spec Spec, handle func(line []byte)) error {
	text, err := json.Marshal(spec.Config)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	stderr, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = stderr.Close() }()
	events, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	p.cmd, p.exited = exec.Command(self), make(chan struct{})
	p.cmd.Env = append(os.Environ(), spec.Env+"="+string(text))
	p.cmd.Stderr = stderr
	p.cmd.ExtraFiles = []*os.File{theirs}
	dieWithParent(p.cmd)
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return err
	}

	started := make(chan error, 1)
	go func() {
		defer close(p.exited)
		// Linux sends the parent-death signal when the thread that forked ends: so it stays.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		_ = theirs.Close()
		started <- err
		if err != nil {
			_ = events.Close()
			return
		}
		read(events, handle)
		_ = p.cmd.Wait()
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start a client process: %w", err)
	}
	return nil
}

func read(events io.ReadCloser, handle func(line []byte)) {
	defer func() { _ = events.Close() }()
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		handle(lines.Bytes())
	}
}

// Tell writes a command to its standard input, as a line of JSON.
func (p *Process) Tell(command any) {
	line, err := json.Marshal(command)
	if err != nil {
		panic(err)
	}
	// A process that is gone hears nothing.
	_, _ = p.stdin.Write(append(line, '\n'))
}

// Stop has the system stop it, until Cont.
func (p *Process) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Stops = append(p.Stops, Window{Begin: Stamp()})
	_ = p.cmd.Process.Signal(SigStop)
}

// Cont has it go on.
func (p *Process) Cont() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.cmd.Process.Signal(SigCont)
	if n := len(p.Stops); n > 0 && p.Stops[n-1].End == 0 {
		p.Stops[n-1].End = Stamp()
	}
}

// Kill ends the process with SIGKILL and returns when it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed == 0 {
		p.killed = Stamp()
	}
}

// End tells the process to "stop", as an operation that it knows, and awaits its end.
func (p *Process) End(patience time.Duration) bool {
	p.Tell(struct {
		Op string `json:"op"`
	}{"stop"})
	return p.Await(patience)
}

// Await waits for the process to end, and tells whether it did in time, and well. Where it did not
// in time, it is ended, and its goroutines are in its log.
func (p *Process) Await(patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.Success()
	case <-timer.C:
	}
	_ = p.cmd.Process.Signal(syscall.SIGQUIT)
	timer.Reset(5 * time.Second)
	select {
	case <-p.exited:
	case <-timer.C:
		p.Kill()
	}
	return false
}

// WasStopped tells whether the process was stopped, or dead, for all of a stretch of time, or had
// only just been continued.
func (p *Process) WasStopped(begin, end int64) bool {
	const grace = int64(100 * time.Millisecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed != 0 && begin >= p.killed {
		return true
	}
	for _, w := range p.Stops {
		if w.Begin <= begin && (w.End == 0 || end <= w.End+grace) {
			return true
		}
	}
	return false
}

// Killed is the stamp at which it was gone by Kill; 0 if it was not killed.
func (p *Process) Killed() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killed
}

// Exited is closed when it is gone and all that it reported has been handled.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Terminate asks it to end, as an orchestrator does before it kills.
func (p *Process) Terminate() { _ = p.cmd.Process.Signal(syscall.SIGTERM) }
