package docs

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

// What the page says of a node that is replaced under its address. One node has not heard of the lease, and so
// it stands and falls with what takes the place of another. That the new server is started last is what the test is about:
// without the line that does so, two hold.
func TestASpareThatIsStartedWhenTheOldNodeHasGoneGrantsNothingThatIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const old, unaware, spare = 1, 2, 3
		fleet := redlocktest.Start(t, 4)
		addresses := fleet.Addrs()
		var moved atomic.Bool
		clients := func(h *redlocktest.Host) []redis.UniversalClient {
			var all []redis.UniversalClient
			for _, address := range addresses[:spare] {
				client := redis.NewClient(&redis.Options{Addr: address, Dialer: func(ctx context.Context, network, to string) (net.Conn, error) {
					if to == addresses[old] && moved.Load() {
						to = addresses[spare]
					}
					return h.Dial(ctx, network, to)
				}})
				t.Cleanup(func() { require.NoError(t, client.Close()) })
				all = append(all, client)
			}
			return all
		}
		host := fleet.Host("holder")
		holder, rival := lockerOf(t, "holder", clients(host)), lockerOf(t, "rival", clients(fleet.Host("rival")))
		for _, l := range []*redlock.Locker{holder, rival} { // both know the old node
			lease, err := l.Acquire(t.Context(), "other")
			require.NoError(t, err)
			require.NoError(t, lease.Release(t.Context()))
		}
		host.Partition(unaware)
		held, err := holder.Acquire(t.Context(), "sku:42")
		require.NoError(t, err)
		host.Heal()

		fleet.Stop(old)
		fleet.RestartEmpty(spare)
		moved.Store(true)

		next, err := rival.Acquire(t.Context(), "sku:42")
		require.NoError(t, err)
		require.Error(t, held.Err(), "two hold")
		assert.Greater(t, next.Token(), held.Token())
		assert.False(t, time.Now().Before(held.Deadline()))
		require.NoError(t, next.Release(t.Context()))
	})
}
