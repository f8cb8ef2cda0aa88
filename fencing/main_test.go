package fencing_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

const ttl = 2 * time.Second

func TestMain(m *testing.M) {
	logging.Disable() // go-redis reports each dial that a fault makes fail
	goleak.VerifyTestMain(m)
}

// A world is a fleet of lock nodes, and a store with the data.
type world struct {
	t     *testing.T
	locks *redlocktest.Fleet
	store *redlocktest.Fleet
	data  *redis.Client
	gate  *fencing.RedisGate
}

// inWorld runs a test in a bubble, on fake time.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, locks: redlocktest.Start(t, 3), store: redlocktest.Start(t, 1)}
		w.data = w.store.Clients()[0].(*redis.Client)
		w.gate = newGate(t, w.data)
		test(t, w)
	})
}

func newGate(t *testing.T, client redis.UniversalClient, opts ...fencing.RedisOption) *fencing.RedisGate {
	t.Helper()
	gate, err := fencing.NewRedisGate(client, opts...)
	require.NoError(t, err)
	return gate
}

// locker is that of a replica on a machine of its own.
func (w *world) locker(host string, opts ...redlock.Option) *redlock.Locker {
	w.t.Helper()
	opts = append([]redlock.Option{
		redlock.WithTTL(ttl), redlock.WithIdentity(host), redlock.WithClock(redlocktest.NewClock()),
		redlock.WithLogger(slog.New(slog.DiscardHandler)),
	}, opts...)
	l, err := redlock.New(w.locks.Host(host).Clients(), opts...)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { l.Close() })
	return l
}

func (w *world) guard(host string, gate fencing.Gate, opts ...fencing.GuardOption) *fencing.Guard {
	w.t.Helper()
	g, err := fencing.NewGuard(w.locker(host), gate, opts...)
	require.NoError(w.t, err)
	return g
}

// pause is what a process on this host goes through that is stopped past its TTL, as far as the
// lock nodes can see. Its guarded function wakes up in the middle of what it was doing.
func (w *world) pause(host string, d time.Duration) {
	w.locks.Host(host).Partition()
	time.Sleep(d)
	w.locks.Host(host).Heal()
}

func (w *world) get(key string) string {
	w.t.Helper()
	value, err := w.data.Get(context.Background(), key).Result()
	require.NoError(w.t, err)
	return value
}

// allow is a gate that is none.
var allow = fencing.GateFunc(func(context.Context, string, redlock.Token) error { return nil })
