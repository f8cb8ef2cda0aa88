package main

import "syscall"

// Windows has no such signals, and no redis-server either: here the package only compiles.
const (
	sigStop = syscall.Signal(19)
	sigCont = syscall.Signal(18)
)
