package redlocktest_test

import (
	"bufio"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock/redlocktest"
)

// socket is a client as another process would be one.
func socket(t *testing.T, url string) *redis.Client {
	t.Helper()
	opt, err := redis.ParseURL(url)
	require.NoError(t, err)
	opt.ContextTimeoutEnabled = true
	opt.MaxRetries = -1
	opt.DialerRetries = 1
	c := redis.NewClient(opt)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func TestOtherProcessesConnectByTCP(t *testing.T) {
	f := redlocktest.Start(t, 3, redlocktest.WithTCP())
	for i, url := range f.URLs() {
		set(t, socket(t, url), "k", "v", time.Minute)
		assert.Equal(t, []string{"k"}, f.Keys(i))
	}
	value, err := f.Clients()[1].Get(t.Context(), "k").Result()
	require.NoError(t, err)
	assert.Equal(t, "v", value, "clients in memory see the same nodes")
}

func TestFaultsActOnTCPConnections(t *testing.T) {
	f := redlocktest.Start(t, 1, redlocktest.WithTCP())
	c := socket(t, f.URLs()[0])
	set(t, c, "k", "v", 0)

	f.Stop(0)
	require.Error(t, c.Ping(t.Context()).Err())
	require.ErrorIs(t, f.Clients()[0].Ping(t.Context()).Err(), syscall.ECONNREFUSED)
	f.Restart(0)
	require.Equal(t, "v", c.Get(t.Context(), "k").Val())

	f.Hang(0)
	require.Error(t, c.Set(within(t, 20*time.Millisecond), "k", "late", 0).Err())
	value, _ := f.Get(0, "k")
	require.Equal(t, "v", value)
	f.Resume(0)
	require.Eventually(t, func() bool {
		value, _ := f.Get(0, "k")
		return value == "late"
	}, 5*time.Second, time.Millisecond)

	require.NoError(t, c.Ping(t.Context()).Err())
	f.Partition(0)
	require.Error(t, c.Set(within(t, 20*time.Millisecond), "k", "lost", 0).Err())
	f.Heal(0)
	require.Equal(t, "late", c.Get(t.Context(), "k").Val())

	f.Delay(0, 20*time.Millisecond)
	start := time.Now()
	require.NoError(t, c.Ping(t.Context()).Err())
	assert.GreaterOrEqual(t, time.Since(start), 20*time.Millisecond)
}

func TestASocketOpenedDuringAPartitionIsSilent(t *testing.T) {
	f := redlocktest.Start(t, 1, redlocktest.WithTCP())
	f.Partition()
	require.Error(t, socket(t, f.URLs()[0]).Ping(within(t, 20*time.Millisecond)).Err())
	assert.Zero(t, f.Commands(0))
	f.Heal()
	require.NoError(t, socket(t, f.URLs()[0]).Ping(t.Context()).Err())
}

func TestAHostsPartitionHoldsInAFleetWithTCP(t *testing.T) {
	f := redlocktest.Start(t, 1, redlocktest.WithTCP())
	a, b := impatient(t, f.Host("a"), f, 0), impatient(t, f.Host("b"), f, 0)
	f.Host("a").Partition()
	require.Error(t, a.Ping(within(t, 20*time.Millisecond)).Err())
	require.NoError(t, b.Ping(t.Context()).Err())
	require.NoError(t, socket(t, f.URLs()[0]).Ping(t.Context()).Err())
	f.Host("a").Heal()
	require.NoError(t, a.Ping(t.Context()).Err())
}

func TestAResetReachesSockets(t *testing.T) {
	f := redlocktest.Start(t, 1, redlocktest.WithTCP())
	conn, err := net.Dial("tcp", f.Addrs()[0])
	require.NoError(t, err)
	defer conn.Close()
	r := bufio.NewReader(conn)
	ping := func() { _, _ = conn.Write([]byte("*1\r\n$4\r\nPING\r\n")) }
	ping()
	_, err = r.ReadString('\n')
	require.NoError(t, err)

	f.Delay(0, time.Minute)
	before := f.Commands(0)
	ping()
	require.Eventually(t, func() bool { return f.Commands(0) > before }, 5*time.Second, time.Millisecond)
	f.Partition() // loses the answer
	f.Heal()
	_, err = r.ReadString('\n')
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

func TestCloseDoesNotWaitForAProcessThatDoesNotRead(t *testing.T) {
	f := redlocktest.Start(t, 1, redlocktest.WithTCP())
	big := make([]byte, 1<<20)
	require.NoError(t, f.Clients()[0].Set(t.Context(), "k", big, 0).Err())
	conn, err := net.Dial("tcp", f.Addrs()[0])
	require.NoError(t, err)
	defer conn.Close()
	for range 50 { // far more than sockets buffer
		_, err = conn.Write([]byte("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"))
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return f.Commands(0) > 50 }, 5*time.Second, time.Millisecond)
	require.NoError(t, f.Close())
}
