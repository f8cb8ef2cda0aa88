//go:build unix

package main

import "syscall"

// cpuSeconds is how long this process has computed.
func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Nano()) / 1e9 }
	return seconds(usage.Utime) + seconds(usage.Stime)
}
