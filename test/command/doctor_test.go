package command_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/test/redisserver"
)

func urlsOf(servers ...*redisserver.Server) (urls []string) {
	for _, s := range servers {
		urls = append(urls, "redis://"+s.Addr())
	}
	return urls
}

func TestAFreshFleetIsSoundOnceItHasBeenUpForTheLongestTTL(t *testing.T) {
	t.Parallel()
	fleet := redisserver.StartFleet(t, 3)
	var d diagnosis
	var got outcome
	require.Eventually(t, func() bool {
		d, got = diagnose(t, urlsOf(fleet...), "--max-ttl", "2s")
		return got.code == 0
	}, soon, poll, "%s", &got.out)
	d.require(t, "ok", "test-lease", "tokens grow")
	d.require(t, "ok", "rights")
	d.require(t, "ok", "clock")
	locks := 0
	for _, s := range fleet {
		if slices.ContainsFunc(s.Keys(), func(key string) bool { return !strings.Contains(key, ":fence") }) {
			locks++ // a node that hears late of a release
		}
	}
	require.LessOrEqual(t, locks, len(fleet)/2, "locks are left")
}

func TestSettingsOfRealServersAreSeen(t *testing.T) {
	t.Parallel()
	evicting := redisserver.Start(t, redisserver.WithConfig("maxmemory", "100mb"), redisserver.WithConfig("maxmemory-policy", "allkeys-lru"))
	full := redisserver.Start(t, redisserver.WithConfig("maxmemory", "1kb"))
	everySecond := redisserver.Start(t, redisserver.WithConfig("appendonly", "yes"))
	always := redisserver.Start(t, redisserver.WithAppendOnlyAlways())
	urls := urlsOf(evicting, full, everySecond, always)
	d, got := diagnose(t, urls)
	require.Equal(t, 1, got.code)
	d.require(t, "warn", "memory", evicting.Addr(), "allkeys-lru", "noeviction")
	d.require(t, "warn", "memory", full.Addr(), "of maxmemory is used")
	d.require(t, "ERROR", "writes", full.Addr(), "OOM", "raise maxmemory")
	d.require(t, "ok", "persistence", everySecond.Addr(), "appendonly yes, appendfsync everysec", "leases need none")
	d.require(t, "warn", "size", "4 nodes")

	d, _ = diagnose(t, urls, "--trust-persistence")
	d.require(t, "ERROR", "persistence", evicting.Addr(), "appendonly no")
	d.require(t, "ERROR", "persistence", everySecond.Addr(), "appendfsync everysec")
	d.require(t, "ok", "persistence", always.Addr(), "appendonly yes, appendfsync always")
}

func TestAReplicaIsNoNodeAndAMasterShouldHaveNone(t *testing.T) {
	t.Parallel()
	master := redisserver.Start(t)
	replica := redisserver.Start(t, redisserver.WithReplicaOf(master))
	d, got := diagnose(t, urlsOf(master, replica))
	require.Equal(t, 1, got.code)
	d.require(t, "ERROR", "role", replica.Addr(), "slave of "+master.Addr())
	d.require(t, "ERROR", "writes", replica.Addr(), "READONLY")
	d.require(t, "warn", "role", master.Addr(), "1 connected replica")
}

func TestOneServerThroughAProxyIsNoSecondNode(t *testing.T) {
	t.Parallel()
	server := redisserver.Start(t)
	proxy := server.Proxy()
	d, got := diagnose(t, []string{"redis://" + server.Addr(), "redis://" + proxy.Addr()})
	require.Equal(t, 1, got.code)
	d.require(t, "ERROR", "same-server", server.Addr(), proxy.Addr())
}

func TestAServerThatHangsDoesNotHoldTheDoctorUp(t *testing.T) {
	t.Parallel()
	fleet := redisserver.StartFleet(t, 3)
	fleet[1].Pause()
	fleet[2].Kill()
	began := time.Now()
	d, got := diagnose(t, urlsOf(fleet...), "--timeout", "500ms")
	require.Equal(t, 1, got.code)
	require.Less(t, time.Since(began), soon)
	d.require(t, "ERROR", "reach", fleet[1].Addr(), "does not answer within 500ms")
	d.require(t, "ERROR", "reach", fleet[2].Addr(), "nothing listens there")
}

func TestTLSAndItsAbsenceAreToldApart(t *testing.T) {
	t.Parallel()
	secure := redisserver.Start(t, redisserver.WithTLS())
	plain := redisserver.Start(t)
	d, _ := diagnose(t, []string{"redis://" + secure.Addr(), "rediss://" + plain.Addr()}, "--timeout", "20s")
	d.require(t, "ERROR", "reach", secure.Addr(), "it speaks TLS", "rediss://")
	d.require(t, "ERROR", "reach", plain.Addr(), "does not speak TLS", "redis://")

	url := []string{"rediss://" + secure.Addr()}
	d, _ = diagnose(t, url)
	d.require(t, "ERROR", "reach", "authority that is not known", "--tls-ca")

	file, err := secure.Client().ConfigGet(t.Context(), "tls-ca-cert-file").Result()
	require.NoError(t, err)
	d, got := diagnose(t, url, "--tls-ca", file["tls-ca-cert-file"])
	d.require(t, "ok", "reach", secure.Addr())
	require.False(t, d.has("ERROR", "reach"), got.out)
}

func TestPasswordsThatAreMissingOrWrongAreToldApartAndNotRepeated(t *testing.T) {
	t.Parallel()
	server := redisserver.Start(t, redisserver.WithACL("user default on >right ~* &* +@all"))
	open := redisserver.Start(t)
	d, _ := diagnose(t, []string{"redis://" + server.Addr(), "redis://:wr0ng@" + strings.Replace(server.Addr(), "127.0.0.1", "localhost", 1), "redis://:surplus@" + open.Addr()})
	d.require(t, "ERROR", "reach", server.Addr(), "wants a password")
	d.require(t, "ERROR", "reach", "localhost", "is wrong")
	got := quorate(t, []string{"redis://:wr0ng@" + server.Addr()}, "doctor")
	require.NotContains(t, got.out+got.err, "wr0ng")
	d, _ = diagnose(t, []string{"redis://:right@" + server.Addr()})
	d.require(t, "ok", "reach")
}

func TestAServerOfAClusterIsNoNodeByItselfAndAClusterIs(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t, 3)
	alone := redisserver.Start(t)
	first := cluster.Masters[0]
	d, got := diagnose(t, []string{"redis://" + first.Addr(), "cluster+redis://" + alone.Addr()})
	require.Equal(t, 1, got.code)
	d.require(t, "ERROR", "role", first.Addr(), "server of a Redis Cluster", "cluster+redis://")
	d.require(t, "ERROR", "reach", "is no Redis Cluster", "without cluster+")

	d, _ = diagnose(t, []string{"cluster+redis://" + first.Addr()})
	for _, master := range cluster.Masters {
		d.require(t, "ok", "reach", master.Addr())
		d.require(t, "ok", "rights", master.Addr())
	}
	require.False(t, d.has("warn", "hosts"), "its shards are one node")

	cluster.Masters[2].Kill()
	d, got = diagnose(t, []string{"cluster+redis://" + first.Addr()}, "--timeout", "5s")
	require.Equal(t, 1, got.code)
	d.require(t, "ERROR", "reach", cluster.Masters[2].Addr())
}

// documentedRule is the rule of docs/acl.md, word by word.
func documentedRule(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/acl.md")
	require.NoError(t, err)
	for line := range strings.Lines(string(page)) {
		if words := strings.Fields(line); len(words) > 2 && words[0] == "user" && words[2] == "on" {
			return words
		}
	}
	require.FailNow(t, "docs/acl.md has no line that begins with: user … on")
	return nil
}

func TestEachRightOfTheDocumentedRuleIsMissedByName(t *testing.T) {
	t.Parallel()
	rule := documentedRule(t)
	const examiner = "user examiner on >examiner ~* &* +@all"
	server := redisserver.Start(t, redisserver.WithACL("user default off", strings.Join(rule, " "), examiner))
	admin := server.Client(func(o *redis.Options) { o.Username, o.Password = "examiner", "examiner" })
	password := ""
	for _, word := range rule {
		if p, ok := strings.CutPrefix(word, ">"); ok {
			password = p
		}
	}
	url := []string{"redis://" + rule[1] + ":" + password + "@" + server.Addr()}
	set := func(words []string) {
		command := []any{"ACL", "SETUSER", rule[1], "reset"}
		for _, word := range words {
			command = append(command, word)
		}
		require.NoError(t, admin.Do(t.Context(), command...).Err())
	}
	set(rule[2:])
	d, _ := diagnose(t, url)
	d.require(t, "ok", "rights", "all rights that leases need")

	for _, right := range rule[2:] {
		if !strings.ContainsRune("+~&", rune(right[0])) || right == "+scan" {
			continue
		}
		set(slices.DeleteFunc(slices.Clone(rule[2:]), func(word string) bool { return word == right }))
		d, got := diagnose(t, url)
		require.True(t, d.has("ERROR", "rights", right) || d.has("warn", "rights", right), "%s: %s", right, got.out)
	}
}

func TestListingWithoutTheRightSaysWhichIsMissing(t *testing.T) {
	t.Parallel()
	rule := slices.DeleteFunc(documentedRule(t), func(word string) bool { return word == "+scan" })
	server := redisserver.Start(t, redisserver.WithACL("user default off", strings.Join(rule, " ")))
	password := rule[slices.IndexFunc(rule, func(word string) bool { return word[0] == '>' })][1:]
	got := quorate(t, []string{"redis://" + rule[1] + ":" + password + "@" + server.Addr()}, "ls")
	require.NotZero(t, got.code)
	require.Contains(t, got.err, "+scan")
	require.Equal(t, 1, strings.Count(got.err, "\n"), "one line: %s", got.err)
}
