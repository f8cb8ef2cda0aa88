package main

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/test/redisserver"
)

// The hot paths on real redis-servers, for benchstat: what a change does to time and allocations. How
// quorate compares with others is for the rows.

// benchTimes have the nodes count after a second, so that each benchmark can have its own.
var benchTimes = times{TTL: time.Second, MaxTTL: time.Second}

func benchLocker(b *testing.B, nodes int) *ours {
	redis.SetLogger(silent{})
	fleet := redisserver.StartFleet(b, nodes)
	addrs := make([]string, nodes)
	for i, s := range fleet {
		addrs[i] = s.Addr()
	}
	own, err := openQuorate(addrs, benchTimes)
	require.NoError(b, err)
	b.Cleanup(own.close)
	cycle(b, own, "first") // when the nodes count
	b.ReportAllocs()
	return own
}

func cycle(b *testing.B, own *ours, name string) {
	h, err := own.lock(b.Context(), name)
	if err == nil {
		err = h.unlock(b.Context())
	}
	if err != nil {
		b.Error(err)
	}
}

func overFleets(b *testing.B, bench func(b *testing.B, own *ours)) {
	for _, nodes := range []int{1, 5} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) { bench(b, benchLocker(b, nodes)) })
	}
}

func BenchmarkCycle(b *testing.B) {
	overFleets(b, func(b *testing.B, own *ours) {
		for b.Loop() {
			cycle(b, own, "name")
		}
	})
}

func BenchmarkCycleParallel(b *testing.B) {
	overFleets(b, func(b *testing.B, own *ours) {
		var workers atomic.Int64
		b.SetParallelism(128)
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			name := fmt.Sprintf("own-%d", workers.Add(1))
			for pb.Next() {
				cycle(b, own, name)
			}
		})
	})
}

func BenchmarkHotName(b *testing.B) {
	overFleets(b, func(b *testing.B, own *ours) {
		b.SetParallelism(8)
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				cycle(b, own, "hot")
			}
		})
	})
}

func BenchmarkExtend(b *testing.B) {
	overFleets(b, func(b *testing.B, own *ours) {
		lease, err := own.locker.Acquire(b.Context(), "name", redlock.WithMaxExtensions(1<<30))
		require.NoError(b, err)
		for b.Loop() {
			if err := lease.Extend(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		require.NoError(b, lease.Release(b.Context()))
	})
}

func BenchmarkGuard(b *testing.B) {
	overFleets(b, func(b *testing.B, own *ours) {
		store := redisserver.Start(b).Client()
		require.NoError(b, store.Set(b.Context(), stockKey, stock, 0).Err())
		gate, err := fencing.NewRedisGate(store)
		require.NoError(b, err)
		guard, err := fencing.NewGuard(own.locker, gate)
		require.NoError(b, err)
		g := &guarded{ours: own, store: store, redis: gate, guard: guard}
		for b.Loop() {
			if err := g.update(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
