package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// process is a client process as the harness sees it.
type process struct {
	config clientConfig
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	exited chan struct{} // closed when it is gone and its events are all read

	mu      sync.Mutex
	windows []window // in which it was stopped
	killed  int64    // stamp, 0 if it was not
}

// window is a stretch of time. An end of 0 is not over yet.
type window struct{ begin, end int64 }

// startProcess starts a client. What it reports goes to handle, on one goroutine.
func startProcess(config clientConfig, dir string, handle func(event)) (*process, error) {
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	stderr, err := os.OpenFile(filepath.Join(dir, config.identity()+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stderr.Close() }()
	events, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p := &process{config: config, cmd: exec.Command(self), exited: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), clientEnv+"="+string(text))
	p.cmd.Stderr = stderr
	p.cmd.ExtraFiles = []*os.File{theirs}
	dieWithParent(p.cmd)
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
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
		p.read(events, handle)
		_ = p.cmd.Wait()
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start a client process: %w", err)
	}
	return p, nil
}

func (p *process) read(events io.ReadCloser, handle func(event)) {
	defer func() { _ = events.Close() }()
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		// The last line of a process that was killed may be cut off.
		if err := json.Unmarshal(lines.Bytes(), &e); err == nil {
			handle(e)
		}
	}
}

func (p *process) tell(c command) {
	line, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	// A process that is gone hears nothing.
	_, _ = p.stdin.Write(append(line, '\n'))
}

func (p *process) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.windows = append(p.windows, window{begin: stamp()})
	_ = p.cmd.Process.Signal(sigStop)
}

func (p *process) cont() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.cmd.Process.Signal(sigCont)
	if n := len(p.windows); n > 0 && p.windows[n-1].end == 0 {
		p.windows[n-1].end = stamp()
	}
}

// kill ends the process with SIGKILL and returns when it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed == 0 {
		p.killed = stamp()
	}
}

// end has the process drain and end, and tells whether it did in time. Where it did not, its
// goroutines are in its log.
func (p *process) end(patience time.Duration) bool {
	p.tell(command{Op: "stop"})
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
		p.kill()
	}
	return false
}

// wasStopped tells whether the process was stopped, or dead, for all of a stretch of time, or had
// only just been continued.
func (p *process) wasStopped(begin, end int64) bool {
	const grace = int64(100 * time.Millisecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed != 0 && begin >= p.killed {
		return true
	}
	for _, w := range p.windows {
		if w.begin <= begin && (w.end == 0 || end <= w.end+grace) {
			return true
		}
	}
	return false
}
