//go:build !unix

package dbserver

import "os/exec"

// dieWithParent has nothing to offer here: a server whose parent dies before Stop is left running.
func dieWithParent(*exec.Cmd) {}

func tieToParent(int) (release func()) { return func() {} }
