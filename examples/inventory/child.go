package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// A child is a replica's process, as the parent sees it.
type child struct {
	number int
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	ended  chan struct{} // closed when the process is gone and all it said was heard
	err    error         // of the process; readable when ended
}

// startChild starts a replica: this program once more, with a config in its environment. Its
// standard input stays open for as long as it is to live.
func startChild(cfg config, heard func(event)) (*child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	env, err := cfg.environment()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), env)
	cmd.Stderr = os.Stderr
	detach(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start replica %d: %w", cfg.Replica, err)
	}
	c := &child{number: cfg.Replica, cmd: cmd, stdin: stdin, ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			var e event
			if err := json.Unmarshal(lines.Bytes(), &e); err == nil { // the last line may be cut off by a kill
				heard(e)
			}
		}
		c.err = cmd.Wait()
	}()
	return c, nil
}

// goOn lets the replica leave the middle of its sale.
func (c *child) goOn() error {
	_, err := io.WriteString(c.stdin, "go on\n")
	return err
}

// tell asks the replica to end.
func (c *child) tell() { _ = c.stdin.Close() } // fails if it has ended

// await waits for the end that tell has asked for, with patience.
func (c *child) await(patience time.Duration) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
		_ = c.cmd.Process.Kill() // has ended just now if this fails
		<-c.ended
		return fmt.Errorf("replica %d did not end within %v and was killed", c.number, patience)
	}
	if c.err != nil {
		return fmt.Errorf("replica %d: %w", c.number, c.err)
	}
	return nil
}
