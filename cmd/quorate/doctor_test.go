package main

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

func TestASoundFleetHasNoErrorAndNothingIsLeftOfTheTestLease(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 5)
	machine := watchDelays(t)
	d, got := diagnose(t, fleet.URLs())
	require.Zero(t, got.code, got.out)
	for _, check := range []string{checkReach, checkVersion, checkRole, checkUptime, checkRights} {
		require.Len(t, d.of(check), 5, "%s: %s", check, got.out)
	}
	d.requireFinding(t, good, checkLease, "tokens grow")
	d.requireFinding(t, good, checkSize, "5 nodes, of which 2 may be down")
	warnings := slices.DeleteFunc(d.warnings(), func(text string) bool { // where a busy machine has kept an answer
		return machine.explains(redlock.DefaultNodeTimeout/4) && slices.Contains(d.of(checkLatency), text)
	})
	require.Equal(t, d.of(checkHosts), warnings, "they are all on this machine, and that is all")

	require.NotContains(t, at(t, fleet, "ls").out, "quorate-doctor/")
	require.Eventually(t, func() bool { // stragglers
		for i := range fleet.Len() {
			for _, key := range fleet.Keys(i) {
				if !strings.HasSuffix(key, ":fence") || fleet.TTL(i, key) > 30*time.Second {
					return false
				}
			}
		}
		return true
	}, inTime, often, "only fences are left, which expire")
}

// warnings are all findings that are.
func (d *diagnosis) warnings() (all []string) {
	for _, f := range d.Findings {
		if f.Verdict == warning {
			all = append(all, d.of(f.Check)...)
		}
	}
	return slices.Compact(all)
}

func TestWarningsCountOnlyWhereTheDoctorIsStrict(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	got := at(t, fleet, "doctor", "--timeout", inTime.String())
	require.Zero(t, got.code, got.out)
	require.Regexp(t, `the fleet can be used, with \d+ warnings?\n$`, got.out) // of hosts, and of answers that a busy machine has kept
	require.Equal(t, exitFailed, at(t, fleet, "doctor", "--strict").code)
}

func TestTheFormsOfAVerdict(t *testing.T) {
	t.Parallel()
	d := &diagnosis{}
	d.add(finding{Verdict: good})
	require.Equal(t, "the fleet is as it should be", d.summary())
	d.add(finding{Verdict: warning}, finding{Verdict: warning})
	require.Equal(t, "the fleet can be used, with 2 warnings", d.summary())
	d.add(finding{Verdict: bad})
	require.Equal(t, "the fleet has 1 error and 2 warnings", d.summary())
}

func TestNodesThatAreDownHungOrFreshAreToldApart(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 5)
	fleet.Hang(1)
	fleet.RestartEmpty(2)
	urls := fleet.URLs()
	urls[0] = "redis://" + deadAddress
	began := time.Now()
	d, got := diagnose(t, urls, "--timeout", "2s")
	require.Less(t, time.Since(began), inTime)
	require.Equal(t, exitFailed, got.code)
	d.requireFinding(t, bad, checkReach, "nothing listens there", "start the server")
	d.requireFinding(t, bad, checkReach, fleet.Addrs()[1], "does not answer within 2s")
	d.requireFinding(t, warning, checkUptime, fleet.Addrs()[2], "do not count for another")
	d.requireFinding(t, bad, checkQuorum, "2 of 5 nodes vote", "wait for")
	require.Empty(t, d.of(checkLease), "there is no point in it")
}

// deadAddress is one at which nothing listens, and nobody begins to.
const deadAddress = "127.0.0.1:1"

func TestAMinorityThatIsDownIsAnErrorOfThoseNodesAndAWarningOfTheFleet(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	urls := fleet.URLs()
	urls[2] = "redis://" + deadAddress
	d, got := diagnose(t, urls)
	require.Equal(t, exitFailed, got.code)
	d.requireFinding(t, warning, checkQuorum, "2 of 3 nodes vote", "no more may fail")
	d.requireFinding(t, good, checkLease, "acquired")
}

func TestAFleetThatIsFreshSaysHowLongToWait(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3, redlocktest.WithUptime(0))
	d, got := diagnose(t, fleet.URLs(), "--max-ttl", "1m")
	require.Equal(t, exitFailed, got.code)
	d.requireFinding(t, bad, checkQuorum, "0 of 3 nodes vote", "wait for", "one by one")
	d, got = diagnose(t, fleet.URLs(), "--trust-persistence")
	require.NotZero(t, got.code, "the embedded nodes have no append-only file")
	d.requireFinding(t, good, checkLease, "acquired")
	d.requireFinding(t, bad, checkPersistence, "appendonly no", "--trust-persistence")
}

func TestSizesThatDoNotHelpAreWarnedOf(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 4)
	d, _ := diagnose(t, fleet.URLs())
	d.requireFinding(t, warning, checkSize, "4 nodes", "loss of 1", "as 3 nodes do")
	d, _ = diagnose(t, fleet.URLs()[:2])
	d.requireFinding(t, warning, checkSize, "fails more often than one")
	d, _ = diagnose(t, fleet.URLs()[:1])
	d.requireFinding(t, warning, checkSize, "one node")
	require.Empty(t, d.of(checkHosts))
}

func TestOneServerByTwoAddressesIsAnError(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 2)
	again := strings.Replace(fleet.URLs()[0], "127.0.0.1", "localhost", 1)
	d, got := diagnose(t, append(fleet.URLs(), again))
	require.Equal(t, exitFailed, got.code)
	d.requireFinding(t, bad, checkSame, fleet.Addrs()[0], "localhost", "the quorum is none")
}

func TestTheClockThatIsOffIsTheOneThatDiffersFromMost(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 5)
	fleet.SkewClock(1, time.Minute)
	fleet.SkewClock(4, -time.Minute)
	d, got := diagnose(t, fleet.URLs())
	require.Zero(t, got.code, got.out)
	d.requireFinding(t, warning, checkClock, fleet.Addrs()[1], " ahead of that of most nodes", "run NTP there")
	d.requireFinding(t, warning, checkClock, fleet.Addrs()[4], " behind that of most nodes")
	d.requireOff(t, fleet.Addrs()[1], time.Minute)
	d.requireOff(t, fleet.Addrs()[4], time.Minute)
	require.Len(t, d.of(checkClock), 2)

	for i := range fleet.Len() {
		fleet.SkewClock(i, -time.Minute)
	}
	d, _ = diagnose(t, fleet.URLs())
	d.requireFinding(t, warning, checkClock, fleetWide, " ahead of that of most nodes", "run NTP here")
	d.requireOff(t, fleetWide, time.Minute)
}

// requireOff sees by how much a clock is told to be off, give or take what a busy machine may add.
func (d *diagnosis) requireOff(t *testing.T, node string, want time.Duration) {
	t.Helper()
	for _, f := range d.Findings {
		if f.Check == checkClock && f.Node == node {
			_, text, _ := strings.Cut(f.Found, "clock is ")
			off, err := time.ParseDuration(strings.Fields(text)[0])
			require.NoError(t, err, f.Found)
			require.InDelta(t, want.Seconds(), off.Seconds(), 10, f.Found)
			return
		}
	}
	require.FailNow(t, "no finding of its clock", node)
}

func TestNodesThatAreAllFarAwayMakeNoClockWrong(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	for i := range fleet.Len() {
		fleet.Delay(i, 250*time.Millisecond) // so the middle of a round trip is long after the node has looked at its clock
	}
	d, _ := diagnoseUntil(t, good, checkClock, fleet.URLs(), "--timeout", "2s")
	d.requireFinding(t, good, checkClock)
}

func TestASlowNodeHasNoWrongClock(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	fleet.Delay(1, 140*time.Millisecond) // beyond a quarter of the limit
	d, got := diagnose(t, fleet.URLs(), "--timeout", "4s")
	require.Zero(t, got.code, got.out)
	d.requireFinding(t, warning, checkLatency, fleet.Addrs()[1], "not far from the 500ms")
	d.requireFinding(t, good, checkClock)

	fleet.Delay(1, 300*time.Millisecond)
	d, got = diagnoseUntil(t, bad, checkLatency, fleet.URLs(), "--timeout", "2s", "--max-ttl", "1s") // a quarter of it is less
	require.Equal(t, exitFailed, got.code)
	d.requireFinding(t, bad, checkLatency, fleet.Addrs()[1], "left alone")
}

func TestWhatIsNoRedisIsToldWithWhatToDo(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	secret := httptest.NewUnstartedServer(http.NotFoundHandler())
	secret.Config.ErrorLog = log.New(io.Discard, "", 0)
	secret.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	secret.StartTLS()
	t.Cleanup(secret.Close)
	node := embedded(t, 1).Addrs()[0]
	for name, test := range map[string]struct {
		url   string
		words []string
	}{
		"HTTP":             {"redis://" + plain.Listener.Addr().String(), []string{"another service listens there"}},
		"TLS to a plain":   {"rediss://" + node, []string{"does not speak TLS", "redis://"}},
		"plain to TLS":     {"redis://" + secret.Listener.Addr().String(), []string{"it speaks TLS", "rediss://"}},
		"unknown issuer":   {"rediss://" + secret.Listener.Addr().String(), []string{"authority that is not known", "--tls-ca"}},
		"unknown host":     {"redis://no-such-host.invalid:6379", []string{"no-such-host.invalid"}},
		"no socket":        {"unix:///nonexistent/redis.sock", []string{"mend the path"}},
		"no password":      {pretend(t, refusing("-NOAUTH Authentication required.")), []string{"wants a password"}},
		"wrong password":   {pretend(t, refusing("-WRONGPASS invalid username-password pair or user is disabled.")), []string{"is wrong"}},
		"loading":          {pretend(t, refusing("-LOADING Redis is loading the dataset in memory")), []string{"wait"}},
		"protected":        {pretend(t, refusing("-DENIED Redis is running in protected mode")), []string{"bind address"}},
		"too many clients": {pretend(t, refusing("-ERR max number of clients reached")), []string{"maxclients"}},
		"not a cluster":    {"cluster+" + pretend(t, refusing("-ERR This instance has cluster support disabled")), []string{"is no Redis Cluster", "without cluster+"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, got := diagnose(t, []string{test.url})
			require.Equal(t, exitFailed, got.code)
			d.requireFinding(t, bad, checkReach, test.words...)
			require.Empty(t, got.err, "the lines say it")
		})
	}
}

func TestSettingsThatEndangerLocksAreToldWithWhatToDo(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		changes []string
		args    []string
		verdict verdict
		check   string
		words   []string
	}{
		"evicts":             {[]string{"maxmemory_policy", "allkeys-lru"}, nil, warning, checkMemory, []string{"allkeys-lru", "CONFIG SET maxmemory-policy noeviction"}},
		"full":               {[]string{"maxmemory", "1000", "used_memory", "950"}, nil, warning, checkMemory, []string{"95 %", "raise maxmemory"}},
		"old":                {[]string{"redis_version", "6.0.16"}, nil, bad, checkVersion, []string{"6.0.16", "6.2"}},
		"odd version":        {[]string{"redis_version", "unstable"}, nil, warning, checkVersion, []string{"unstable"}},
		"new enough":         {[]string{"redis_version", "6.2.0"}, nil, good, checkVersion, []string{"6.2.0"}},
		"replica":            {[]string{"role", "slave", "master_host", "10.0.0.1", "master_port", "6379"}, nil, bad, checkRole, []string{"slave of 10.0.0.1:6379", "REPLICAOF NO ONE"}},
		"has replicas":       {[]string{"connected_slaves", "2"}, nil, warning, checkRole, []string{"2 connected replicas"}},
		"has a replica":      {[]string{"connected_slaves", "1"}, nil, warning, checkRole, []string{"1 connected replica;"}},
		"in a cluster":       {[]string{"cluster_enabled", "1"}, nil, bad, checkRole, []string{"cluster+redis://"}},
		"snapshots fail":     {[]string{"rdb_last_bgsave_status", "err"}, nil, warning, checkPersistence, []string{"stop-writes-on-bgsave-error"}},
		"disk is full":       {[]string{"aof_last_write_status", "err"}, nil, bad, checkPersistence, []string{"look at the disk"}},
		"nothing needed":     {nil, nil, good, checkPersistence, []string{"leases need none", "appendonly yes keeps their records"}},
		"trusted in vain":    {nil, []string{"--trust-persistence"}, bad, checkPersistence, []string{"appendonly no"}},
		"trusted and hidden": {[]string{"aof_enabled", "1"}, []string{"--trust-persistence"}, warning, checkPersistence, []string{"+config|get"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pretend(t, pretender{info: anInfo(test.changes...)})
			d, _ := diagnose(t, []string{url}, test.args...)
			d.requireFinding(t, test.verdict, test.check, test.words...)
		})
	}
}

func TestAServerThatRefusesWritesIsAnError(t *testing.T) {
	t.Parallel()
	for reply, advice := range map[string]string{
		"-MISCONF Redis is configured to save RDB snapshots": "disk",
		"-OOM command not allowed when used memory > max":    "raise maxmemory",
		"-READONLY You can't write against a read only":      "masters only",
		"-NOREPLICAS Not enough good replicas to write":      "min-replicas-to-write 0",
	} {
		url := pretend(t, pretender{info: anInfo(), answer: func(command []string) (string, bool) {
			return reply + "\r\n", command[0] == "set"
		}})
		d, _ := diagnose(t, []string{url})
		d.requireFinding(t, bad, checkWrites, reply[1:8], advice)
	}
}

func TestARightThatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	noCommand := func(name string) func([]string) (string, bool) {
		return func(command []string) (string, bool) {
			return "-NOPERM User key-channel has no permissions to run the '" + name + "' command\r\n", command[0] == name
		}
	}
	ofKey := func(part string) func([]string) (string, bool) {
		return func(command []string) (string, bool) {
			return "-NOPERM No permissions to access a key\r\n", len(command) > 1 && command[0] == "get" && strings.Contains(command[1], part)
		}
	}
	for right, test := range map[string]struct {
		answer  func([]string) (string, bool)
		verdict verdict
	}{
		"+ping": {noCommand("ping"), warning}, "+info": {noCommand("info"), warning}, "+subscribe": {noCommand("subscribe"), warning},
		"+unsubscribe": {noCommand("unsubscribe"), warning},
		"+evalsha":     {noCommand("evalsha"), bad}, "+eval": {noCommand("eval"), bad}, "+set": {noCommand("set"), bad}, "+get": {noCommand("get"), bad},
		"+pexpire": {noCommand("pexpire"), bad}, "+pttl": {noCommand("pttl"), bad}, "+publish": {noCommand("publish"), bad}, "+del": {noCommand("del"), bad},
		"~{quorate:*}:fence": {ofKey("}:fence"), bad}, "~{quorate:*}:line": {ofKey("}:line"), bad},
		"~quorate:*": {func(command []string) (string, bool) {
			return "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n", len(command) > 1 && strings.HasPrefix(command[1], "quorate:quorate-doctor") && command[0] != "publish"
		}, bad},
		"&quorate:*": {func(command []string) (string, bool) {
			return "-NOPERM No permissions to access a channel\r\n", command[0] == "publish" || command[0] == "subscribe"
		}, bad},
	} {
		t.Run(right, func(t *testing.T) {
			t.Parallel()
			url := pretend(t, pretender{info: anInfo(), answer: test.answer})
			d, _ := diagnose(t, []string{url})
			d.requireFinding(t, test.verdict, checkRights, "the user default lacks "+right+":", "ACL SETUSER default "+right)
		})
	}
}

func TestARightThatOnlyListingNeedsIsNoFault(t *testing.T) {
	t.Parallel()
	url := pretend(t, pretender{info: anInfo(), answer: func(command []string) (string, bool) {
		return "-NOPERM User x has no permissions to run the 'scan' command\r\n", command[0] == "scan"
	}})
	d, _ := diagnose(t, []string{url})
	d.requireFinding(t, good, checkRights, "not +scan")
}

func TestAServerThatStopsAnsweringInTheMiddleIsTold(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	p := pretender{info: anInfo()}
	p.answer = func(command []string) (string, bool) {
		if command[0] == "eval" {
			<-hang
		}
		return "", false
	}
	url := pretend(t, p)
	t.Cleanup(func() { close(hang) }) // before the server's, which waits for that
	began := time.Now()
	d, got := diagnose(t, []string{url}, "--timeout", "2s")
	require.Less(t, time.Since(began), inTime)
	require.Equal(t, exitFailed, got.code)
	d.requireFinding(t, bad, checkReach, "has answered, and then did not", "within 2s")
}

func TestWhatAServerSaysDoesNothingToTheTerminal(t *testing.T) {
	t.Parallel()
	url := pretend(t, pretender{info: anInfo("redis_version", "\x1b[2J", "role", "\x1b[31mslave", "maxmemory_policy", "\u202eurl")})
	got := on(t, []string{url}, "doctor")
	require.Equal(t, exitFailed, got.code)
	requireHarmless(t, got.out+got.err)
}

func TestTheDoctorFindsKeysOfAPrefixWithAHashTag(t *testing.T) {
	t.Parallel()
	require.Equal(t, probeKeys{"quorate:n", "{quorate:n}:fence", "{quorate:n}:line", "quorate:n}:fence"}, probeKeysOf("quorate:", "n"))
	require.Equal(t, probeKeys{"{a}n", "{a}n:fence:tagged", "{a}n:line:tagged", "{a}n:fence:tagged"}, probeKeysOf("{a}", "n"))
	require.Len(t, probeKeysOf("{a}", "n").patterns("{a}"), 1)
	fleet := embedded(t, 1)
	d, got := diagnose(t, fleet.URLs(), "--prefix", "{tag}")
	require.Zero(t, got.code, got.out)
	d.requireFinding(t, good, checkLease)
}
