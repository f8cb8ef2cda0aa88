package redisserver

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"
)

// CanSetClocks tells whether [WithOwnClock] works on this system: it needs the dynamic loader of
// Linux.
const CanSetClocks = runtime.GOOS == "linux"

// WithOwnClock gives the server a wall clock of its own, for [Server.StepClock] and
// [Server.SetClockRate]. It needs Linux and a C compiler, as the race detector does.
func WithOwnClock() Option {
	return func(o *options) { o.ownClock = true }
}

//go:embed testdata/clock.c
var clockSource []byte

// clock is the wall clock of one server. The server maps the file and looks at it whenever it
// asks for the time, so a change holds from the moment at which it is written.
//
// It is not libfaketime, because jemalloc asks for the time while libfaketime is still looking
// for the functions that it replaces: a redis-server that is linked to jemalloc never starts.
type clock struct {
	file    *os.File
	library string

	version   int64
	baseReal  time.Time
	baseShown time.Time
	ppm       int64
}

func newClock(dir string) (*clock, error) {
	if !CanSetClocks {
		return nil, fmt.Errorf("a server has no clock of its own on %s: run this on Linux, or without WithOwnClock", runtime.GOOS)
	}
	source := filepath.Join(dir, "clock.c")
	if err := os.WriteFile(source, clockSource, 0o600); err != nil {
		return nil, err
	}
	c := &clock{library: filepath.Join(dir, "clock.so")}
	build := exec.Command("cc", "-shared", "-fPIC", "-O2", "-o", c.library, source)
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the server's clock (install a C compiler, as cc on the PATH): %w\n%s", err, out)
	}
	var err error
	if c.file, err = os.OpenFile(filepath.Join(dir, "clock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	now := time.Now()
	return c, c.set(now, now, 0)
}

// env is what the server's process needs to run by the clock.
func (c *clock) env() []string {
	return []string{"LD_PRELOAD=" + c.library, "REDISSERVER_CLOCK=" + c.file.Name()}
}

// shown is what the clock shows at a real time.
func (c *clock) shown(at time.Time) time.Time {
	d := at.Sub(c.baseReal)
	return c.baseShown.Add(d + d/1_000_000*time.Duration(c.ppm))
}

func (c *clock) set(realTime, shown time.Time, ppm int64) error {
	c.baseReal, c.baseShown, c.ppm = realTime, shown, ppm
	// The reader takes none of what it read while the version was odd, or changed.
	c.version += 2
	words := func(words ...int64) []byte {
		var b []byte
		for _, w := range words {
			b = binary.NativeEndian.AppendUint64(b, uint64(w))
		}
		return b
	}
	for _, write := range []struct {
		at    int64
		bytes []byte
	}{
		{0, words(c.version - 1)},
		{8, words(realTime.UnixNano(), shown.UnixNano(), ppm)},
		{0, words(c.version)},
	} {
		if _, err := c.file.WriteAt(write.bytes, write.at); err != nil {
			return err
		}
	}
	return nil
}

// StepClock sets the server's wall clock d forward, or back where d is negative. The step survives
// a restart.
func (s *Server) StepClock(d time.Duration) {
	s.tb.Helper()
	s.setClock("step", func(c *clock) error {
		now := time.Now()
		return c.set(now, c.shown(now).Add(d), c.ppm)
	})
}

// SetClockRate lets the server's wall clock run fast by so many parts per million from now on,
// or slow where it is negative, without a step.
func (s *Server) SetClockRate(ppm int64) {
	s.tb.Helper()
	s.setClock("set the rate of", func(c *clock) error {
		now := time.Now()
		return c.set(now, c.shown(now), ppm)
	})
}

func (s *Server) setClock(what string, set func(*clock) error) {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	err := errors.New("start it WithOwnClock")
	if s.clock != nil {
		err = set(s.clock)
	}
	if err != nil {
		s.tb.Errorf("redisserver: %s the clock of %s: %v", what, s.Addr(), err)
	}
}

// ClockOffset is how far the server's wall clock is ahead of the machine's, asked of the server
// itself.
func (s *Server) ClockOffset() (time.Duration, error) {
	before := time.Now()
	reply, err := s.ask("TIME")
	if err != nil {
		return 0, err
	}
	parts, _ := reply.([]any)
	if len(parts) != 2 {
		return 0, fmt.Errorf("TIME was answered with %v", reply)
	}
	var numbers [2]int64
	for i, part := range parts {
		text, _ := part.(string)
		if numbers[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return 0, fmt.Errorf("TIME was answered with %v: %w", reply, err)
		}
	}
	after := time.Now()
	return time.Unix(numbers[0], numbers[1]*1000).Sub(before.Add(after.Sub(before) / 2)), nil
}
