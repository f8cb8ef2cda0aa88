//go:build unix

package clusters_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/test/redisserver"
)

// The costs that the arithmetic of docs/scaling.md goes by:
//
//	cd test && go test -run '^$' -bench . -benchtime 100000x ./clusters
//
// server-µs is what one node spends on an operation, all shards of it together, and wire-B the bytes that it
// reads and writes; client-µs is what the process of the clients spends, on all nodes. These are CPU times,
// which a busy machine changes less than throughput. 512 goroutines of one process use one Locker, and nobody
// contends for a name.

func BenchmarkAcquireAndRelease(b *testing.B) {
	onBoth(b, func(b *testing.B, x *bench) {
		x.measure(b.N, x.acquireAndRelease)
	})
}

// BenchmarkShards tells whether an operation costs a node more the more shards it has.
func BenchmarkShards(b *testing.B) {
	for _, n := range []int{1, 3, 9} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			x := onClusters(b, redisserver.StartClusters(b, 1, n))
			x.measure(b.N, x.acquireAndRelease)
		})
	}
}

func BenchmarkExtend(b *testing.B) {
	onBoth(b, func(b *testing.B, x *bench) {
		leases := x.hold(1000)
		x.measure(b.N, func(ctx context.Context, i int) error { return leases[i%len(leases)].Extend(ctx) })
	})
}

// BenchmarkHold tells what a held lease takes of the memory of one node and of the client's, and what it
// leaves behind for the fence TTL.
func BenchmarkHold(b *testing.B) {
	onBoth(b, func(b *testing.B, x *bench) {
		server, client := x.serverBytes(), heap()
		leases := x.hold(b.N)
		b.ReportMetric(float64(x.serverBytes()-server)/float64(b.N), "server-B/lease")
		b.ReportMetric(float64(heap()-client)/float64(b.N), "client-B/lease")
		x.crowd(len(leases), func(ctx context.Context, i int) error { return leases[i].Release(ctx) })
		b.ReportMetric(float64(x.serverBytes()-server)/float64(b.N), "server-B/fence")
		b.ReportMetric(0, "ns/op")
	})
}

// A bench is one fleet of three nodes under measurement.
type bench struct {
	b       *testing.B
	locker  *redlock.Locker
	servers [][]*redis.Client // of each node
}

func onBoth(b *testing.B, run func(*testing.B, *bench)) {
	b.Run("servers", func(b *testing.B) {
		fleet := redisserver.StartFleet(b, 3)
		x := &bench{b: b}
		for _, s := range fleet {
			x.servers = append(x.servers, []*redis.Client{s.Client()})
		}
		x.begin(fleet.Clients())
		run(b, x)
	})
	b.Run("clusters", func(b *testing.B) {
		run(b, onClusters(b, redisserver.StartClusters(b, 3, 3)))
	})
}

func onClusters(b *testing.B, f fleet) *bench {
	x := &bench{b: b}
	for _, c := range f {
		var shards []*redis.Client
		for _, m := range c.Masters {
			shards = append(shards, m.Client())
		}
		x.servers = append(x.servers, shards)
	}
	x.begin(f.clients())
	return x
}

func (x *bench) begin(nodes []redis.UniversalClient) {
	x.b.Helper()
	locker, err := redlock.New(nodes, redlock.WithLogger(slog.New(slog.DiscardHandler)),
		redlock.WithTrustPersistence(), redlock.WithMaxTTL(10*time.Minute), redlock.WithTTL(10*time.Minute),
		redlock.WithNodeTimeout(5*time.Second), redlock.WithMaxExtensions(1<<30))
	require.NoError(x.b, err)
	x.b.Cleanup(func() { _ = locker.Close() })
	x.locker = locker
	for i := range 100 { // connects, and loads the scripts
		lease, err := locker.Acquire(x.b.Context(), fmt.Sprintf("warm-up:%d", i))
		require.NoError(x.b, err)
		require.NoError(x.b, lease.Extend(x.b.Context()))
		require.NoError(x.b, lease.Release(x.b.Context()))
	}
}

// crowd does something n times, with so many at a time.
func (x *bench) crowd(n int, do func(ctx context.Context, i int) error) {
	const width = 512
	var all sync.WaitGroup
	for w := range min(width, n) {
		all.Go(func() {
			for i := w; i < n; i += width {
				if err := do(x.b.Context(), i); err != nil {
					x.b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

func (x *bench) measure(n int, do func(ctx context.Context, i int) error) {
	server, client, wire := x.serverTime(), ownTime(), x.wireBytes()
	x.b.ResetTimer()
	x.crowd(n, do)
	x.b.StopTimer()
	x.b.ReportMetric(float64((x.serverTime()-server).Microseconds())/float64(n), "server-µs/op")
	x.b.ReportMetric(float64((ownTime()-client).Microseconds())/float64(n), "client-µs/op")
	x.b.ReportMetric(float64(x.wireBytes()-wire)/float64(n), "wire-B/op")
}

func (x *bench) acquireAndRelease(ctx context.Context, i int) error {
	lease, err := x.locker.Acquire(ctx, "sku:"+strconv.Itoa(i%100_000))
	if err != nil {
		return err
	}
	return lease.Release(ctx)
}

func (x *bench) hold(n int) []*redlock.Lease {
	leases := make([]*redlock.Lease, n)
	x.crowd(n, func(ctx context.Context, i int) (err error) {
		leases[i], err = x.locker.Acquire(ctx, "sku:"+strconv.Itoa(i))
		return err
	})
	return leases
}

// serverTime is the CPU time that one node has used, on average.
func (x *bench) serverTime() time.Duration {
	seconds := x.sum("cpu", "used_cpu_user", "used_cpu_sys")
	return time.Duration(seconds / float64(len(x.servers)) * float64(time.Second))
}

func (x *bench) serverBytes() int64 {
	return int64(x.sum("memory", "used_memory")) / int64(len(x.servers))
}

func (x *bench) wireBytes() int64 {
	return int64(x.sum("stats", "total_net_input_bytes", "total_net_output_bytes")) / int64(len(x.servers))
}

func (x *bench) sum(section string, fields ...string) (sum float64) {
	for _, node := range x.servers {
		for _, shard := range node {
			text, err := shard.Info(x.b.Context(), section).Result()
			require.NoError(x.b, err)
			for line := range strings.Lines(text) {
				key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
				for _, field := range fields {
					if key == field {
						number, err := strconv.ParseFloat(value, 64)
						require.NoError(x.b, err)
						sum += number
					}
				}
			}
		}
	}
	return sum
}

func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc) + int64(stats.StackInuse)
}

// ownTime is the CPU time of this process.
func ownTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
