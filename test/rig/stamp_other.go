//go:build !linux

package rig

import "time"

// Stamp is the machine's wall clock, in nanoseconds: nothing else is the same in all processes
// here without cgo. Do not set it during a run.
func Stamp() int64 { return time.Now().UnixNano() }
