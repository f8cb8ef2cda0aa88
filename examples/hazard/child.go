package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// A child is a holder's process, as the parent sees it.
type child struct {
	who    string
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	events chan event // closed at the end of the process
	err    error      // of the process; readable when events is closed
}

// startChild starts a holder: this program once more, with a config in its environment.
func startChild(cfg config) (*child, error) {
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
		return nil, fmt.Errorf("start %s: %w", cfg.Who, err)
	}
	c := &child{who: cfg.Who, cmd: cmd, stdin: stdin, events: make(chan event, 16)} // a holder tells less
	go func() {
		defer close(c.events)
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			var e event
			if err := json.Unmarshal(lines.Bytes(), &e); err == nil { // the last line may be cut off by a kill
				c.events <- e
			}
		}
		c.err = cmd.Wait()
	}()
	return c, nil
}

// write lets a paused holder write. It reads this when it goes on.
func (c *child) write() error {
	_, err := io.WriteString(c.stdin, "write\n")
	return err
}

// end ends the process, whatever state it is in.
func (c *child) end() {
	_ = c.cmd.Process.Kill() // has ended already if this fails
	for range c.events {
	}
	_ = c.stdin.Close()
}
