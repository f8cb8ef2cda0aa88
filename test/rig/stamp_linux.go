package rig

import "golang.org/x/sys/unix"

// Stamp is the machine's monotonic clock, in nanoseconds: the same in all processes.
func Stamp() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("CLOCK_MONOTONIC cannot be read: " + err.Error())
	}
	return ts.Nano()
}
