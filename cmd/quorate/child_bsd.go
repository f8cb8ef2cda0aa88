//go:build unix && !linux

package main

import "syscall"

// dieWithParent does nothing: these systems have nothing of the kind.
func dieWithParent(*syscall.SysProcAttr) {}

// watchStops does nothing: a stop cannot be seen here without taking the end away from who waits for it. So
// Ctrl-Z stops the program, and quorate goes on.
func (ch *child) watchStops(func()) {}
