//go:build !linux

package main

import (
	"os"

	"github.com/quorate/quorate/test/rig"
)

// stopSelf stops the process.
func stopSelf() error {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	return self.Signal(rig.SigStop)
}
