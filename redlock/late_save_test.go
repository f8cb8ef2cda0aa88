package redlock_test

import (
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

// A watchedClock stands still unless it is set, and calls seen with the functions that ask for the
// time, the innermost first.
type watchedClock struct {
	elapsed atomic.Int64
	seen    atomic.Pointer[func(callers string)]
}

func (c *watchedClock) set(d time.Duration) { c.elapsed.Store(int64(d)) }
func (c *watchedClock) Now() time.Time      { return time.Now() }
func (c *watchedClock) Elapsed() time.Duration {
	now := time.Duration(c.elapsed.Load())
	if seen := c.seen.Load(); seen != nil {
		(*seen)(callers())
	}
	return now
}

func callers() string {
	pcs := make([]uintptr, 20)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	var names []string
	for {
		frame, more := frames.Next()
		names = append(names, frame.Function)
		if !more {
			return strings.Join(names, "\n")
		}
	}
}

// An extension is decided in the last moment of the validity, while somebody saves in the first moment
// after it: the one must not make the other believe that it has saved.
func TestASaveThatMeetsAnExtensionInTheLastMomentIsDoneOrRefused(t *testing.T) {
	fleet := redlocktest.Start(t, 3)
	c := &watchedClock{}
	l, err := redlock.New(fleet.Clients(), redlock.WithClock(c), redlock.WithLogger(quiet()))
	require.NoError(t, err)
	defer l.Close()
	lease, err := l.Acquire(t.Context(), "job", redlock.WithTTL(9*time.Second))
	require.NoError(t, err)

	var meets atomic.Bool
	looked, extended, saved := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	seen := func(callers string) {
		switch {
		case strings.Contains(callers, "Lease).extended\n") && meets.CompareAndSwap(false, true):
			c.set(9 * time.Second) // the validity is over
			go func() { saved <- lease.Save(t.Context(), []byte("x")) }()
			select {
			case <-looked:
			case <-time.After(100 * time.Millisecond): // it cannot look while the extension does
			}
		case strings.Contains(callers, "Lease).endIfDue\n") && strings.Contains(callers, "Lease).save\n"):
			select {
			case looked <- struct{}{}:
				<-extended
			default:
			}
		}
	}
	c.set(8 * time.Second)
	c.seen.Store(&seen)
	err = lease.Extend(t.Context())
	close(extended)
	require.NoError(t, err)
	require.True(t, meets.Load())
	if err := <-saved; err == nil {
		require.Equal(t, "x", string(lease.State()), "it was told that this is saved")
	}
	c.seen.Store(nil)
}
