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

// listRight is what listing names takes.
const listRight = "+scan"

func documentedRule(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/acl.md")
	require.NoError(t, err)
	for _, right := range append(clusterRights, listRight) {
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
		strings.Replace(rule, "user quorate", "user bare", 1),
		strings.Replace(rule, "user quorate", "user operator", 1)+" "+clusterRights[0]+" "+listRight))
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

	list := func(l *redlock.Locker) (names []string, err error) {
		for status, err := range l.List(t.Context(), redlock.Filter{}) {
			if err != nil {
				return nil, err
			}
			names = append(names, status.Name)
		}
		return names, nil
	}
	_, err = list(b)
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	require.ErrorContains(t, err, "docs/acl.md")
	names, err := list(host("operator"))
	require.NoError(t, err)
	var used []string
	for _, of := range f.names() {
		used = append(used, of[0], of[1])
	}
	require.ElementsMatch(t, used, names, "of all shards")
}
