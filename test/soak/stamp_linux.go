package main

import "golang.org/x/sys/unix"

// stamp is the machine's monotonic clock, in nanoseconds: the same in all processes.
func stamp() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("CLOCK_MONOTONIC cannot be read: " + err.Error())
	}
	return ts.Nano()
}
