package redisserver

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// soon is how long a test waits for what should come at once, on a loaded machine.
const soon = time.Minute

// hang is how long a test watches for an answer that must not come.
const hang = 150 * time.Millisecond

func TestMain(m *testing.M) {
	if os.Getenv(orphanEnv) != "" {
		os.Exit(m.Run()) // is killed while its server runs: see orphan_test.go
	}
	goleak.VerifyTestMain(m)
}

func TestAServerAnswersAtItsAddress(t *testing.T) {
	t.Parallel()
	server := Start(t)
	client := server.Client()

	require.NoError(t, client.Set(t.Context(), "sku:42", "7", 0).Err())
	assert.Equal(t, []string{"sku:42"}, server.Keys())
	assert.Equal(t, "127.0.0.1:"+strconv.Itoa(server.Port()), server.Addr())
	assert.Len(t, server.RunID(), 40)
}

func TestAServerListensOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	server := Start(t)
	bound, err := server.Client().ConfigGet(t.Context(), "bind").Result()
	require.NoError(t, err)
	assert.Equal(t, "127.0.0.1", bound["bind"])
}

func TestAServerSavesNothingUnlessAsked(t *testing.T) {
	t.Parallel()
	server := Start(t)
	client := server.Client()
	require.NoError(t, client.Set(t.Context(), "k", "v", 0).Err())
	before := server.RunID()

	server.Restart()

	assert.Empty(t, server.Keys())
	assert.NotEqual(t, before, server.RunID())
	require.NoError(t, client.Ping(t.Context()).Err(), "the same client finds it at the same port")
}

func TestAppendOnlyAlwaysSurvivesAKillButNotAnEmptyRestart(t *testing.T) {
	t.Parallel()
	server := Start(t, WithAppendOnlyAlways())
	require.NoError(t, server.Client().Set(t.Context(), "k", "v", 0).Err())

	server.Restart()
	assert.Equal(t, []string{"k"}, server.Keys())

	server.RestartEmpty()
	assert.Empty(t, server.Keys())
}

func TestAKilledServerRefusesConnections(t *testing.T) {
	t.Parallel()
	server := Start(t)
	server.Kill()
	server.Kill() // harmless

	_, err := net.DialTimeout("tcp", server.Addr(), soon)
	require.ErrorContains(t, err, "refused")

	server.Restart()
	require.NoError(t, server.Client().Ping(t.Context()).Err())
}

func TestAPausedServerHangsAndCarriesOutLaterWhatReachedIt(t *testing.T) {
	t.Parallel()
	server := Start(t)
	client := server.Client(func(o *redis.Options) {
		o.ReadTimeout, o.WriteTimeout = hang, soon // what is not written cannot be carried out
		o.MaxRetries = -1
	})
	require.Eventually(t, func() bool { return client.Ping(t.Context()).Err() == nil }, soon, pollInterval)

	server.Pause()
	require.ErrorContains(t, client.Set(t.Context(), "late", "1", 0).Err(), "timeout")

	server.Resume()
	require.Eventually(t, func() bool { return len(server.Keys()) == 1 }, soon, pollInterval)
}

func TestAPausedServerCanBeKilled(t *testing.T) {
	t.Parallel()
	server := Start(t)
	server.Pause()
	server.Restart()
	require.NoError(t, server.Client().Ping(t.Context()).Err())
}

func TestCommandsProcessedCountsOnlyCommandsOfOthers(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]Option{
		"plain": nil,
		"ACL":   {WithACL("user default on nopass ~* &* +@all")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := Start(t, opts...)
			assert.Zero(t, server.CommandsProcessed())

			client := server.Client(func(o *redis.Options) { o.ReadTimeout = soon }) // it asks once
			require.NoError(t, client.Ping(t.Context()).Err())
			before := server.CommandsProcessed()
			server.Keys()
			server.RunID()
			assert.Equal(t, before, server.CommandsProcessed())

			for range 10 {
				require.NoError(t, client.Incr(t.Context(), "n").Err())
			}
			assert.Equal(t, before+10, server.CommandsProcessed())

			server.Restart()
			assert.Zero(t, server.CommandsProcessed())
		})
	}
}

func TestConfigIsPassedOn(t *testing.T) {
	t.Parallel()
	server := Start(t, WithConfig("maxmemory-policy", "allkeys-lru"),
		WithConfig("client-output-buffer-limit", "pubsub 1mb 1mb 60"))
	got, err := server.Client().ConfigGet(t.Context(), "maxmemory-policy").Result()
	require.NoError(t, err)
	assert.Equal(t, "allkeys-lru", got["maxmemory-policy"])
}

func TestAConfigThatRedisRefusesIsReportedWithItsLog(t *testing.T) {
	t.Parallel()
	_, err := start(t, buildOptions([]Option{WithConfig("no-such-setting", "1")}))
	require.ErrorContains(t, err, "no-such-setting")
}

func TestAPortTakenByAnotherIsRetriedWithAnotherPort(t *testing.T) {
	t.Parallel()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = other.Close() }()
	taken := other.Addr().(*net.TCPAddr).Port

	// The first configuration names a port that somebody took since it was probed.
	s := &Server{tb: t}
	first := true
	require.NoError(t, s.open(func() string {
		if first {
			first = false
			s.port = taken
		}
		return s.redisConf()
	}))
	assert.NotEqual(t, taken, s.port)
}

func TestAPortThatIsReservedIsNobodyElses(t *testing.T) {
	t.Parallel()
	port, err := takePort()
	require.NoError(t, err)
	_, err = net.ListenPacket("udp", loopback(port)) // as another process that looks for a port
	require.Error(t, err)
	releasePort(port)
	again, err := net.ListenPacket("udp", loopback(port))
	require.NoError(t, err)
	require.NoError(t, again.Close())
}

func TestAMissingRedisServerFailsTheTestAndSaysWhatToDo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	fake := &fakeTB{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		Start(fake)
	}()
	<-done
	assert.Contains(t, fake.fatal, "run make test, or install redis-server 6.2 or newer")
}

// fakeTB keeps what would have failed the test.
type fakeTB struct {
	testing.TB
	fatal string
}

func (f *fakeTB) Fatalf(format string, args ...any) {
	f.fatal = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestAFleetStartsAsManyServersAsAskedFor(t *testing.T) {
	t.Parallel()
	fleet := StartFleet(t, 3)
	seen := map[string]bool{}
	for i, client := range fleet.Clients() {
		require.NoError(t, client.Set(t.Context(), "i", i, 0).Err())
		seen[fleet[i].RunID()] = true
	}
	assert.Len(t, seen, 3)
	for i, client := range fleet.Clients() {
		got, err := client.Get(t.Context(), "i").Int()
		require.NoError(t, err)
		assert.Equal(t, i, got, "the clients come in the servers' order")
	}
}

func TestAReplicaIsInStepWhenStartReturns(t *testing.T) {
	t.Parallel()
	master := Start(t)
	require.NoError(t, master.Client().Set(t.Context(), "k", "v", 0).Err())
	replica := Start(t, WithReplicaOf(master))
	assert.Equal(t, []string{"k"}, replica.Keys())

	err := replica.Client().Set(t.Context(), "k", "w", 0).Err()
	require.ErrorContains(t, err, "READONLY")
}

const (
	orphanEnv  = "REDISSERVER_TEST_ORPHAN"
	orphanSays = "server process "
)

// This test binary, started again, starts a server and dies with it running.
func TestAServerDoesNotOutliveAKilledTestBinary(t *testing.T) {
	if os.Getenv(orphanEnv) != "" {
		server := Start(t)
		fmt.Println(orphanSays + strconv.Itoa(server.process().pid()) + " at " + server.Addr())
		<-make(chan struct{}) // until killed
	}
	t.Parallel()
	binary, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	again := exec.CommandContext(ctx, binary, "-test.run=^"+t.Name()+"$", "-test.v")
	again.Env = append(os.Environ(), orphanEnv+"=1")
	out, err := again.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, again.Start())

	var said strings.Builder
	buf := make([]byte, 1024)
	for !strings.Contains(said.String(), " at ") || !strings.HasSuffix(said.String(), "\n") {
		n, err := out.Read(buf)
		require.NoError(t, err, said.String())
		said.Write(buf[:n])
	}
	_, line, _ := strings.Cut(said.String(), orphanSays)
	_, addr, _ := strings.Cut(strings.TrimSpace(line), " at ")
	conn, err := net.DialTimeout("tcp", addr, soon)
	require.NoError(t, err)
	require.NoError(t, conn.Close())

	require.NoError(t, again.Process.Kill())
	_ = again.Wait() // it was killed, and says so
	require.Eventually(t, func() bool {
		conn, err := net.DialTimeout("tcp", addr, soon)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}, soon, pollInterval)
}
