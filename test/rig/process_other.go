//go:build !linux

package rig

import "os/exec"

// dieWithParent has nothing to do here: a client ends when its standard input does. Where the
// harness dies while a client is stopped, the system continues the client (it is in an orphaned
// process group), and that ends too.
func dieWithParent(*exec.Cmd) {}
