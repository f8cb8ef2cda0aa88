package main

import (
	"os"
	"strings"
)

// load is the machine's load average over the last minute, where the system tells it: what is
// measured beside other work says more of that than of the library.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
