package main

import "time"

// There is no guard on Windows: a program outlives a quorate that was killed.
type guard struct{}

func startGuard() (*guard, error)       { return &guard{}, nil }
func (*guard) allow(int, time.Duration) {}
func (*guard) forget(int)               {}
func (*guard) close()                   {}

func beGuard() {}
