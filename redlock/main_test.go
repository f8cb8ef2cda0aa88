package redlock_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"

	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

func TestMain(m *testing.M) {
	logging.Disable() // go-redis reports every connection that a fault breaks
	goleak.VerifyTestMain(m)
}

// bubble runs a test with fake time and a fleet of n nodes in memory.
func bubble(t *testing.T, n int, f func(t *testing.T, w *world), opts ...redlocktest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, fleet: redlocktest.Start(t, n, opts...), clocks: map[string]*redlocktest.Clock{}}
		f(t, w)
	})
}

// A world is a fleet with clients on several hosts.
type world struct {
	t      *testing.T
	fleet  *redlocktest.Fleet
	clocks map[string]*redlocktest.Clock
}

func (w *world) clock(host string) *redlocktest.Clock {
	if w.clocks[host] == nil {
		w.clocks[host] = redlocktest.NewClock()
	}
	return w.clocks[host]
}

// locker makes a Locker on a host. It is closed at the end of the test.
func (w *world) locker(host string, opts ...redlock.Option) *redlock.Locker {
	w.t.Helper()
	opts = append([]redlock.Option{
		redlock.WithClock(w.clock(host)), redlock.WithIdentity(host), redlock.WithLogger(quiet()),
	}, opts...)
	l, err := redlock.New(w.fleet.Host(host).Clients(), opts...)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = l.Close() })
	return l
}

func (w *world) acquire(l *redlock.Locker, name string, opts ...redlock.LeaseOption) *redlock.Lease {
	w.t.Helper()
	lease, err := l.Acquire(w.t.Context(), name, opts...)
	require.NoError(w.t, err)
	return lease
}

// lockedOn counts the nodes that hold a lock key for the name.
func (w *world) lockedOn(name string) int {
	n := 0
	for i := range w.fleet.Len() {
		if _, ok := w.fleet.Get(i, redlock.DefaultKeyPrefix+name); ok {
			n++
		}
	}
	return n
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// dialTo makes a dialer that reaches one node whatever address it is given.
func dialTo(h *redlocktest.Host, addr string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) { return h.Dial(ctx, network, addr) }
}
