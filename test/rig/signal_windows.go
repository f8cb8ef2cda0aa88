package rig

import "syscall"

// Windows has no such signals, and no redis-server either: here the package only compiles.
const (
	SigStop = syscall.Signal(19)
	SigCont = syscall.Signal(18)
)
