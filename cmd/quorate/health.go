package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// maxComplaint is how much of what a health check prints is told.
const maxComplaint = 200

// healthCheck runs a command in the shell: all is well if that ends with 0 in time. It tells of each change.
func (k *candidate) healthCheck(command string) func(ctx context.Context) error {
	ill := false // checks come one after the other
	return func(ctx context.Context) error {
		err := k.check(ctx, command)
		switch {
		case errors.Is(ctx.Err(), context.Canceled): // nobody wants to know any more
			return err
		case err != nil && !ill:
			k.say("health check %v; this replica does not lead", err)
		case err == nil && ill && !k.quiet:
			k.say("health check passes again")
		}
		ill = err != nil
		return err
	}
}

func (k *candidate) check(ctx context.Context, command string) error {
	var printed bytes.Buffer
	argv := shell(command)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), environment("NAME", k.name)...)
	cmd.Stdout = &limited{&printed, maxComplaint}
	cmd.Stderr = cmd.Stdout
	cmd.WaitDelay = time.Second // for what it has started to close its output
	setGroup(cmd)
	ch := &child{cmd: cmd}
	cmd.Cancel = func() error {
		ch.kill()
		return nil
	}
	runtime.LockOSThread() // see start
	defer runtime.UnlockOSThread()
	// What it has left running, with its output open, is no fault of it, nor is a machine that was too busy to read that.
	if err := cmd.Run(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		if complaint := oneLine(strings.ToValidUTF8(printed.String(), "")); complaint != "" {
			return fmt.Errorf("%q: %w: %s", command, err, complaint)
		}
		return fmt.Errorf("%q: %w", command, err)
	}
	return nil
}

// limited keeps the beginning of what is written.
type limited struct {
	*bytes.Buffer
	limit int
}

func (l *limited) Write(p []byte) (int, error) {
	if room := l.limit - l.Len(); room > 0 {
		l.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
