package clusters_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/test/redisserver"
)

// What is asked of a cluster beyond the rule of docs/acl.md is on that page, too. The second may be missing.
var clusterRights = []string{"+cluster|slots", "+pubsub|numsub"}

func documentedRule(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/acl.md")
	require.NoError(t, err)
	for _, right := range clusterRights {
		require.Contains(t, string(page), "`"+right+"`")
	}
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "user ") {
			return strings.TrimSpace(line)
		}
	}
	t.Fatal("docs/acl.md has no rule")
	return ""
}

func TestTheSmallestRuleSufficesOnAClusterWithWhatItAsksForItself(t *testing.T) {
	t.Parallel()
	rule := documentedRule(t)
	c := redisserver.StartCluster(t, 3, redisserver.WithACL("user default off",
		rule+" "+strings.Join(clusterRights, " "),
		strings.Replace(rule, "user quorate", "user frugal", 1)+" "+clusterRights[0],
		strings.Replace(rule, "user quorate", "user bare", 1)))
	host := func(user string) *redlock.Locker {
		client := c.Client(func(o *redis.ClusterOptions) {
			o.Username, o.Password, o.DisableIdentity = user, "change-me", true
		})
		return newLocker(t, []redis.UniversalClient{client}, redlock.WithTrustPersistence())
	}
	_, err := host("bare").TryAcquire(t.Context(), "sku:42")
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	require.ErrorContains(t, err, "NOPERM")
	a, b := host("quorate"), host("frugal")
	f := fleet{c}
	for _, of := range f.names() {
		lease := acquire(t, a, of[0])
		require.NoError(t, lease.Extend(t.Context()))
		require.NoError(t, lease.Save(t.Context(), []byte("kept")))
		next := make(chan *redlock.Lease)
		go func() {
			l, err := b.Acquire(t.Context(), of[0])
			if err != nil {
				t.Error(err)
			}
			next <- l
		}()
		wait := time.NewTimer(100 * time.Millisecond)
		<-wait.C
		require.NoError(t, lease.Release(t.Context()))
		require.NoError(t, (<-next).Release(t.Context()))
		require.NoError(t, acquire(t, b, of[1]).Release(t.Context()))
	}
	reports, err := a.Check(t.Context())
	require.NoError(t, err)
	require.Len(t, reports[0].Shards, 3)
	require.Empty(t, reports[0].Shards[0].Warnings)
}
