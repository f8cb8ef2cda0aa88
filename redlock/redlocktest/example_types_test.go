package redlocktest_test

import (
	"fmt"
	"log"
	"time"

	"github.com/quorate/quorate/redlock/redlocktest"
)

// The clock of one machine, which goes wrong in two ways: it is set, and the machine sleeps.
func ExampleClock() {
	clock := redlocktest.NewClock()
	clock.Skew(-time.Hour) // behind; elapsed time is not concerned
	fmt.Println(time.Since(clock.Now()).Round(time.Minute), clock.Elapsed() < time.Minute)
	clock.Suspend(10 * time.Minute) // both clocks go on while timers stand still
	fmt.Println(time.Since(clock.Now()).Round(time.Minute), clock.Elapsed() > 10*time.Minute)
	// Output:
	// 1h0m0s true
	// 50m0s true
}

// script is a TB that is no test: a program that wants Start rather than New.
type script struct{ cleanups []func() }

func (s *script) Helper()                        {}
func (s *script) Cleanup(f func())               { s.cleanups = append(s.cleanups, f) }
func (s *script) Fatalf(format string, a ...any) { log.Fatalf(format, a...) }

func ExampleTB() {
	tb := &script{}
	fleet := redlocktest.Start(tb, 3) // in a test: Start(t, 3)
	fmt.Println(fleet.Len(), "nodes")
	for _, cleanup := range tb.cleanups {
		cleanup()
	}
	// Output:
	// 3 nodes
}
