package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// bench stands in for a test, so that package redisserver can be used outside of one: it keeps
// what is to be cleaned up, and what went wrong.
type bench struct {
	testing.TB // for what has to be there to be a testing.TB; nothing else is ever called

	dir string
	log func(string)

	mu       sync.Mutex
	dirs     int
	cleanups []func()
	errs     []error
}

func newBench(log func(string)) (*bench, error) {
	dir, err := os.MkdirTemp("", "quorate-soak-")
	return &bench{dir: dir, log: log}, err
}

func (b *bench) Helper() {}

func (b *bench) Errorf(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.errs = append(b.errs, fmt.Errorf(format, args...))
}

// fatal is what a Fatalf unwinds with.
type fatal struct{ error }

func (b *bench) Fatalf(format string, args ...any) { panic(fatal{fmt.Errorf(format, args...)}) }

func (b *bench) Logf(format string, args ...any) { b.log(fmt.Sprintf(format, args...)) }

func (b *bench) Failed() bool { return b.err() != nil }

func (b *bench) err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return errors.Join(b.errs...)
}

func (b *bench) TempDir() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dirs++
	dir := filepath.Join(b.dir, fmt.Sprint(b.dirs))
	if err := os.Mkdir(dir, 0o700); err != nil {
		panic(fatal{err})
	}
	return dir
}

func (b *bench) Cleanup(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cleanups = append(b.cleanups, f)
}

// close cleans up, the last first, and removes all files unless keep says that somebody wants to
// look at them.
func (b *bench) close(keep bool) {
	b.mu.Lock()
	cleanups := b.cleanups
	b.cleanups = nil
	b.mu.Unlock()
	for _, f := range slices.Backward(cleanups) {
		f()
	}
	if !keep {
		_ = os.RemoveAll(b.dir)
	}
}
