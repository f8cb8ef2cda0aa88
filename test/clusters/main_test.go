package clusters_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/test/redisserver"
)

const (
	// soon is how long a test waits for what should come at once, on a loaded machine.
	soon = time.Minute
	poll = 5 * time.Millisecond

	// ttl is that of all leases, and the longest.
	ttl = 6 * time.Second
)

func TestMain(m *testing.M) {
	flag.Parse()
	// These tests wait more than they compute.
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		if err := parallel.Value.Set("6"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	redis.SetLogger(silent{}) // it complains of every server that is down
	goleak.VerifyTestMain(m)
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// A fleet is three clusters.
type fleet []*redisserver.Cluster

func start(t *testing.T) fleet {
	t.Helper()
	return redisserver.StartClusters(t, 3, 3)
}

func (f fleet) clients() []redis.UniversalClient {
	clients := make([]redis.UniversalClient, len(f))
	for i, c := range f {
		clients[i] = c.Client()
	}
	return clients
}

// slot is that of a name.
func (f fleet) slot(name string) int { return f[0].Slot(redlock.DefaultKeyPrefix + name) }

// shard is the shard of each cluster that has the name at first.
func (f fleet) shard(name string) int {
	return slices.Index(f[0].Masters, f[0].Owner(f.slot(name)))
}

// names finds two names of each shard.
func (f fleet) names() (names [3][]string) {
	for i := 0; slices.ContainsFunc(names[:], func(of []string) bool { return len(of) < 2 }); i++ {
		name := fmt.Sprintf("sku:%d", i)
		if shard := f.shard(name); len(names[shard]) < 2 {
			names[shard] = append(names[shard], name)
		}
	}
	return names
}

// restartEmpty kills a shard of some clusters and starts it without its memory, all at once.
func (f fleet) restartEmpty(shard int, clusters ...int) {
	done := make(chan struct{})
	for _, c := range clusters {
		go func() {
			f[c].Masters[shard].RestartEmpty()
			done <- struct{}{}
		}()
	}
	for range clusters {
		<-done
	}
}

func newLocker(t *testing.T, clients []redis.UniversalClient, opts ...redlock.Option) *redlock.Locker {
	t.Helper()
	opts = append([]redlock.Option{
		redlock.WithLogger(slog.New(slog.DiscardHandler)),
		redlock.WithMaxTTL(ttl), redlock.WithTTL(ttl), redlock.WithNodeTimeout(ttl / 2),
	}, opts...)
	locker, err := redlock.New(clients, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = locker.Close() })
	return locker
}

// awaitServing waits until the answers of all nodes count for the names.
func awaitServing(t *testing.T, locker *redlock.Locker, names ...string) {
	t.Helper()
	for _, name := range names {
		require.Eventually(t, func() bool {
			status, err := locker.Inspect(t.Context(), name)
			return err == nil && !slices.ContainsFunc(status.Nodes, func(n redlock.NodeStatus) bool {
				return n.Err != nil || n.Quarantine > 0
			})
		}, soon, 20*time.Millisecond, name)
	}
}

// inspect tells what node 0 makes of a name.
func inspect(t *testing.T, locker *redlock.Locker, name string) redlock.NodeStatus {
	t.Helper()
	status, err := locker.Inspect(t.Context(), name)
	require.NoError(t, err)
	return status.Nodes[0]
}

// acquire gets a lease that nothing stands in the way of for long.
func acquire(t *testing.T, locker *redlock.Locker, name string, opts ...redlock.LeaseOption) *redlock.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	lease, err := locker.Acquire(ctx, name, opts...)
	require.NoError(t, err)
	return lease
}
