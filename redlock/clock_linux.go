package redlock

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleepClock reads CLOCK_BOOTTIME, which is CLOCK_MONOTONIC plus the time asleep.
func sleepClock() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0 // kernels before 2.6.39; the monotonic clock remains
	}
	return time.Duration(ts.Nano())
}
