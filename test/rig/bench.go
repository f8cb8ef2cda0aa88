package rig

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// A Bench stands in for a test, so that package redisserver can be used outside of one: it keeps
// what is to be cleaned up, and what went wrong.
type Bench struct {
	testing.TB // for what has to be there to be a testing.TB; nothing else is ever called

	// Dir is where everything lies that is to be kept until Close.
	Dir string
	// Say is told what Logf is.
	Say func(string)

	mu       sync.Mutex
	dirs     int
	cleanups []func()
	errs     []error
}

// NewBench makes a Bench with a directory of its own, whose name begins with prefix.
func NewBench(prefix string, log func(string)) (*Bench, error) {
	dir, err := os.MkdirTemp("", prefix)
	return &Bench{Dir: dir, Say: log}, err
}

// Helper does nothing.
func (b *Bench) Helper() {}

// Errorf notes an error, for Err.
func (b *Bench) Errorf(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.errs = append(b.errs, fmt.Errorf(format, args...))
}

// fatal is what a Fatalf unwinds with.
type fatal struct{ error }

// Fatalf unwinds with a panic, up to Recover.
func (b *Bench) Fatalf(format string, args ...any) { panic(fatal{fmt.Errorf(format, args...)}) }

// Recover gives the error of a Fatalf, given what recover returned; nil if that was nil. Any other
// panic goes on.
func Recover(v any) error {
	if v == nil {
		return nil
	}
	if f, ok := v.(fatal); ok {
		return f.error
	}
	panic(v)
}

// Logf tells Say.
func (b *Bench) Logf(format string, args ...any) { b.Say(fmt.Sprintf(format, args...)) }

// Failed tells whether there was an Errorf.
func (b *Bench) Failed() bool { return b.Err() != nil }

// Err is what went wrong.
func (b *Bench) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return errors.Join(b.errs...)
}

// TempDir makes a directory under Dir.
func (b *Bench) TempDir() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dirs++
	dir := filepath.Join(b.Dir, fmt.Sprint(b.dirs))
	if err := os.Mkdir(dir, 0o700); err != nil {
		panic(fatal{err})
	}
	return dir
}

// Cleanup has Close call f.
func (b *Bench) Cleanup(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cleanups = append(b.cleanups, f)
}

// Close cleans up, the last first, and removes all files unless keep says that somebody wants to
// look at them.
func (b *Bench) Close(keep bool) {
	b.mu.Lock()
	cleanups := b.cleanups
	b.cleanups = nil
	b.mu.Unlock()
	for _, f := range slices.Backward(cleanups) {
		f()
	}
	if !keep {
		_ = os.RemoveAll(b.Dir)
	}
}
