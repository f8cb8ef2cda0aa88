package main

import (
	"os/exec"
	"time"
)

// There is no guard on Windows: a program outlives a quorate that was killed.
type guard struct{}

func startGuard() (*guard, error)       { return &guard{}, nil }
func (*guard) allow(int, time.Duration) {}
func (*guard) forget(int)               {}
func (*guard) close()                   {}

func (*guard) start(cmd *exec.Cmd, _ func() time.Duration) error { return cmd.Start() }

// besides reports that no process has to be anything else than the command.
func besides([]string) (exitCode int, is bool) { return 0, false }
