package redlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

func TestAValueThatOneHolderReadTheNextOneReads(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		a, b, c := w.locker("a"), w.locker("b"), w.locker("c")
		first := w.acquire(a, "job")
		w.fleet.Host("a").Partition(1, 2)
		require.ErrorIs(t, first.Save(t.Context(), []byte("v")), redlock.ErrNoQuorum)
		time.Sleep(10 * time.Second)
		w.fleet.Host("b").Partition(2)
		second := w.acquire(b, "job")
		require.Equal(t, "v", string(second.State()))
		require.NoError(t, second.Release(t.Context()))
		w.fleet.Stop(0)
		third := w.acquire(c, "job")
		require.Equal(t, "v", string(third.State()))
		require.NoError(t, third.Release(t.Context()))
		w.fleet.Host("a").Heal()
		w.fleet.Host("b").Heal()
	})
}

// owners sees the owner of every step with a lock key, by the number of the script's arguments.
type owners struct {
	redis.Hook
	mu   sync.Mutex
	seen map[string]bool
}

func (o *owners) DialHook(n redis.DialHook) redis.DialHook          { return n }
func (o *owners) ProcessHook(n redis.ProcessHook) redis.ProcessHook { return n }
func (o *owners) ProcessPipelineHook(n redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, c := range cmds {
			if args := c.Args(); acquires(args) {
				o.mu.Lock()
				o.seen[args[5].(string)] = true
				o.mu.Unlock()
			}
		}
		return n(ctx, cmds)
	}
}

func TestEveryAttemptHasAnOwnerOfItsOwn(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		clients := w.fleet.Host("a").Clients()
		o := &owners{seen: map[string]bool{}}
		clients[0].AddHook(o)
		a, err := redlock.New(clients, redlock.WithClock(w.clock("a")), redlock.WithLogger(quiet()))
		require.NoError(t, err)
		defer a.Close()
		lease := w.acquire(w.locker("b"), "job")
		_, err = a.Acquire(t.Context(), "job", redlock.WithMaxAttempts(3))
		require.ErrorIs(t, err, redlock.ErrTaken)
		require.Len(t, o.seen, 3)
		require.NoError(t, lease.Release(t.Context()))
	})
}
