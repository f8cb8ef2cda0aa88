package redlocktest_test

import (
	"bufio"
	"net"
	"os"
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

// soon is how long a test waits for what should come at once, on a loaded machine.
const soon = time.Minute

// bareConn is a connection on which a test sees each byte.
type bareConn struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

func bare(t *testing.T, addr string) *bareConn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &bareConn{Conn: conn, t: t, r: bufio.NewReader(conn)}
}

func (c *bareConn) say(text string) {
	c.t.Helper()
	_, err := c.Write([]byte(text))
	require.NoError(c.t, err)
}

func (c *bareConn) hear() string {
	c.t.Helper()
	line, err := c.r.ReadString('\n')
	require.NoError(c.t, err)
	return line
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

	conn := bare(t, f.Addrs()[0])
	f.Hang(0)
	conn.say("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\nlate\r\n")
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
	_, err := conn.r.ReadByte()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	value, _ := f.Get(0, "k")
	require.Equal(t, "v", value)
	f.Resume(0)
	require.NoError(t, conn.SetReadDeadline(time.Time{}))
	require.Equal(t, "+OK\r\n", conn.hear())
	value, _ = f.Get(0, "k")
	require.Equal(t, "late", value)

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
	conn := bare(t, f.Addrs()[0])
	const ping = "*1\r\n$4\r\nPING\r\n"
	conn.say(ping)
	conn.hear()

	f.Delay(0, time.Hour)
	before := f.Commands(0)
	conn.say(ping + ping)
	// When the second is carried out, the answer to the first is on its way.
	require.Eventually(t, func() bool { return f.Commands(0) == before+2 }, soon, time.Millisecond)
	f.Partition() // loses the answer
	f.Heal()
	_, err := conn.r.ReadString('\n')
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

func TestCloseDoesNotWaitForAProcessThatDoesNotRead(t *testing.T) {
	f := redlocktest.Start(t, 1, redlocktest.WithTCP())
	big := make([]byte, 1<<20)
	require.NoError(t, f.Clients()[0].Set(t.Context(), "k", big, 0).Err())
	conn := bare(t, f.Addrs()[0])
	for range 50 { // far more than sockets buffer
		conn.say("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n")
	}
	require.Eventually(t, func() bool { return f.Commands(0) > 50 }, soon, time.Millisecond)
	require.NoError(t, f.Close())
}
