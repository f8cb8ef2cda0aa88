package real_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/redlock"
)

const (
	// soon is how long a test waits for what should come at once, on a loaded machine.
	soon = time.Minute
	poll = 5 * time.Millisecond
	// longest is a TTL that no machine stands still for.
	longest = time.Minute
)

func TestMain(m *testing.M) {
	flag.Parse()
	// These tests wait more than they compute: two at a time on two cores would take minutes.
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

// newLocker makes a Locker that says nothing unless told otherwise. It is closed at the end of
// the test, before its clients and the servers.
func newLocker(t *testing.T, clients []redis.UniversalClient, opts ...redlock.Option) *redlock.Locker {
	t.Helper()
	opts = append([]redlock.Option{redlock.WithLogger(slog.New(slog.DiscardHandler))}, opts...)
	locker, err := redlock.New(clients, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = locker.Close() })
	return locker
}

// atEase are the options of tests in which neither the restart rule nor a node that hangs is the
// subject: a machine that stands still for a moment changes nothing for them.
func atEase(more ...redlock.Option) []redlock.Option {
	return append([]redlock.Option{redlock.WithTrustPersistence(), redlock.WithTTL(longest), redlock.WithMaxTTL(longest), redlock.WithNodeTimeout(4 * time.Second)}, more...)
}

// awaitServing waits until the answers of all nodes count for all lockers. It asks for a name
// that nobody uses, and so leaves no trace of itself.
func awaitServing(t *testing.T, lockers ...*redlock.Locker) {
	t.Helper()
	for _, locker := range lockers {
		require.Eventually(t, func() bool {
			status, err := locker.Inspect(t.Context(), "nobody's")
			return err == nil && !slices.ContainsFunc(status.Nodes, func(n redlock.NodeStatus) bool {
				return n.Err != nil || n.Quarantine > 0
			})
		}, soon, 20*time.Millisecond)
	}
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

// release gives a lease back. Where the machine stood still for longer than the node timeout,
// the nodes are told later: that is the subject of no test that uses this.
func release(t *testing.T, lease *redlock.Lease) {
	t.Helper()
	if err := lease.Release(context.WithoutCancel(t.Context())); err != nil {
		assert.ErrorIs(t, err, redlock.ErrNoQuorum)
	}
}

// lockKey is the key of a name's lock under the default prefix.
func lockKey(name string) string { return redlock.DefaultKeyPrefix + name }

// owners are the values of a key on each node, "" where it is missing.
func owners(t *testing.T, nodes []redis.UniversalClient, key string) []string {
	t.Helper()
	found := make([]string, len(nodes))
	for i, node := range nodes {
		value, err := node.Get(t.Context(), key).Result()
		if err != nil {
			require.ErrorIs(t, err, redis.Nil)
		}
		found[i] = value
	}
	return found
}

// count is how many of the values equal the wanted one.
func count(values []string, wanted string) int {
	n := 0
	for _, v := range values {
		if v == wanted {
			n++
		}
	}
	return n
}

// pass lets time pass, where the time itself is the subject.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
		t.FailNow()
	}
}

func median(samples []time.Duration) time.Duration { return quantile(samples, 0.5) }

func quantile(samples []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// measured runs a measurement up to three times and wants one that is good: a machine that does
// other things as well may spoil one. A measurement tells what was wrong with it, or "".
func measured(t *testing.T, measure func() string) {
	t.Helper()
	const tries = 3
	for try := 1; ; try++ {
		wrong := measure()
		if wrong == "" {
			return
		}
		t.Logf("measurement %d of %d: %s", try, tries, wrong)
		require.Less(t, try, tries, wrong)
	}
}

// inTime runs a trial with a TTL that is to outlast something else, and again with a longer one where
// the machine stood still meanwhile, so that the trial shows nothing: then it returns the lease, which
// has run out.
func inTime(t *testing.T, trial func(ttl time.Duration) (ranOut *redlock.Lease)) {
	t.Helper()
	for ttl := 3 * time.Second; ; ttl *= 2 {
		lease := trial(ttl)
		if lease == nil {
			return
		}
		require.ErrorIs(t, lease.Err(), redlock.ErrLeaseExpired)
		require.Less(t, ttl, 12*time.Second, "the lease runs out, however long it lasts")
		t.Logf("a lease of %v ran out", ttl)
	}
}

// journal keeps what a Locker logs.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// lines are those that contain all of the words.
func (j *journal) lines(words ...string) []string {
	var found []string
	for line := range strings.Lines(j.String()) {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			found = append(found, line)
		}
	}
	return found
}

func (j *journal) logger() redlock.Option {
	return redlock.WithLogger(slog.New(slog.NewTextHandler(j, nil)))
}
