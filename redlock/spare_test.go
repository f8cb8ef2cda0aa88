package redlock_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

// A spare that is given a node's address has been up for long, was always a master, and was never told of a lock.
func TestASpareThatTakesANodesPlaceDoesNotCountForAWhile(t *testing.T) {
	bubble(t, 4, func(t *testing.T, w *world) {
		const old, unaware, spare = 1, 2, 3
		var moved atomic.Bool
		locker := func(name string) *redlock.Locker {
			var clients []redis.UniversalClient
			for _, address := range w.fleet.Addrs()[:spare] {
				clients = append(clients, redis.NewClient(&redis.Options{Addr: address, Dialer: w.dialMoved(w.fleet.Host(name), old, spare, &moved)}))
			}
			l, err := redlock.New(clients, redlock.WithClock(w.clock(name)), redlock.WithIdentity(name), redlock.WithLogger(quiet()))
			require.NoError(t, err)
			t.Cleanup(func() {
				_ = l.Close()
				for _, c := range clients {
					_ = c.Close()
				}
			})
			return l
		}
		holder, rival := locker("holder"), locker("rival")
		for range 3 {
			for _, l := range []*redlock.Locker{holder, rival} { // both have heard from the old node
				require.NoError(t, w.acquire(l, "other").Release(t.Context()))
			}
			time.Sleep(10 * time.Second)
		}
		w.fleet.Host("holder").Partition(unaware)
		held := w.acquire(holder, "sku:42")
		w.fleet.Host("holder").Heal(unaware)
		w.fleet.Stop(old)
		moved.Store(true)

		next := w.acquire(rival, "sku:42")
		require.Error(t, held.Err(), "two hold")
		require.Greater(t, next.Token(), held.Token())
	})
}

// dialMoved dials from a host, and once a node has moved, the other in its place.
func (w *world) dialMoved(h *redlocktest.Host, from, to int, moved *atomic.Bool) func(context.Context, string, string) (net.Conn, error) {
	addresses := w.fleet.Addrs()
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == addresses[from] && moved.Load() {
			address = addresses[to]
		}
		return h.Dial(ctx, network, address)
	}
}
