package main

import (
	"os"
	"os/exec"
)

// setGroup does nothing: what the program starts is not reached on Windows.
func setGroup(*exec.Cmd) {}

// signal does nothing: Windows sends Ctrl-C to all processes of a console, to the program as well.
func (ch *child) signal(os.Signal) {}

// terminate kills: a process cannot be asked on Windows.
func (ch *child) terminate() { ch.kill() }

func (ch *child) kill() { _ = ch.cmd.Process.Kill() } // has ended, if this fails

func (ch *child) groupLives() bool { return false }

func codeOf(state *os.ProcessState) int { return state.ExitCode() }

// A terminal need not be given to anybody on Windows.
type terminal struct{}

func (c *console) terminal() *terminal       { return nil }
func (t *terminal) give(*child, func() bool) {}
func (t *terminal) takeBack(*child)          {}
