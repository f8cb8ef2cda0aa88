package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

const (
	// inTime is how long a test waits for what should come at once, on a loaded machine.
	inTime = time.Minute
	often  = 10 * time.Millisecond

	// hostile is a name that would clear a terminal, colour it, and turn the direction of writing.
	hostile = "a\x1b[2J\x1b[31m\u202eb\r\nc"
)

// An outcome is what a command line has come to.
type outcome struct {
	code     int
	out, err string
}

// A stream is a buffer for one that writes while another reads.
type stream struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *stream) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// embedded is a fleet that commands can connect to.
func embedded(t *testing.T, n int, opts ...redlocktest.Option) *redlocktest.Fleet {
	t.Helper()
	return redlocktest.Start(t, n, append(opts, redlocktest.WithTCP())...)
}

// at carries out a command line on a fleet. Where nothing is said to be the matter with that, it has a quorum.
func at(t *testing.T, fleet *redlocktest.Fleet, args ...string) outcome {
	t.Helper()
	do := func() outcome { return on(t, fleet.URLs(), args...) }
	if _, is := inHaste.Load(fleet.URLs()[0]); is {
		return do()
	}
	return quorately(t, do)
}

// on carries out a command line on the nodes with these URLs.
func on(t *testing.T, urls []string, args ...string) outcome {
	t.Helper()
	var out, err stream
	c := &console{in: strings.NewReader(""), out: &out, err: &err, interactive: func() bool { return false }}
	code := c.run(t.Context(), commandOn(urls, args...))
	return outcome{code, out.String(), err.String()}
}

func commandOn(urls []string, args ...string) []string {
	return append([]string{"quorate", "--nodes", strings.Join(urls, ",")}, args...)
}

// answering carries out a command line as a person would who types this.
func answering(t *testing.T, typed io.Reader, fleet *redlocktest.Fleet, args ...string) outcome {
	t.Helper()
	var out, err stream
	c := &console{in: typed, out: &out, err: &err, interactive: func() bool { return true }}
	code := c.run(t.Context(), commandOn(fleet.URLs(), args...))
	return outcome{code, out.String(), err.String()}
}

// A background is a command that goes on until it is stopped.
type background struct {
	out, err stream
	stop     context.CancelFunc
	code     chan int
}

func inBackground(t *testing.T, args ...string) *background {
	t.Helper()
	b := &background{code: make(chan int, 1)}
	ctx, stop := context.WithCancel(t.Context())
	b.stop = stop
	c := &console{in: strings.NewReader(""), out: &b.out, err: &b.err, interactive: func() bool { return false }}
	go func() { b.code <- c.run(ctx, args) }()
	t.Cleanup(stop)
	return b
}

// end stops the command and returns its code.
func (b *background) end(t *testing.T) int {
	t.Helper()
	b.stop()
	select {
	case code := <-b.code:
		return code
	case <-time.After(inTime):
		require.FailNow(t, "the command does not end", "%s", b.err.String())
		return -1
	}
}

// serviceOf is a Locker of another process, as far as the nodes can see.
func serviceOf(t *testing.T, fleet *redlocktest.Fleet, identity string) *redlock.Locker {
	t.Helper()
	locker, err := redlock.New(fleet.Host(identity).Clients(),
		redlock.WithIdentity(identity), lenient(), redlock.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, locker.Close()) })
	return locker
}

// hold has a name held on all nodes.
func hold(t *testing.T, fleet *redlocktest.Fleet, locker *redlock.Locker, name string) *redlock.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), inTime)
	defer cancel()
	lease, err := locker.Acquire(ctx, name, redlock.WithAutoExtend(true))
	require.NoError(t, err)
	t.Cleanup(func() { _ = lease.Release(context.WithoutCancel(t.Context())) })
	require.Eventually(t, func() bool {
		for i := range fleet.Len() {
			if _, held := fleet.Get(i, redlock.DefaultKeyPrefix+name); !held {
				return false
			}
		}
		return true
	}, inTime, often, "stragglers")
	return lease
}

// field is a cell of the row that begins with a cell, in a table.
func field(t *testing.T, table, begins string, column int) string {
	t.Helper()
	for line := range strings.Lines(table) {
		if cells := strings.Fields(line); len(cells) > column && cells[0] == begins {
			return cells[column]
		}
	}
	require.FailNow(t, "no such cell", "row %q, column %d in:\n%s", begins, column, table)
	return ""
}

// requireHarmless sees that nothing in a text controls a terminal.
func requireHarmless(t *testing.T, text string) {
	t.Helper()
	for _, bad := range []string{"\x1b", "\u202e", "\r"} {
		require.NotContains(t, text, bad)
	}
}
