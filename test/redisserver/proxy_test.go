package redisserver

import (
	"bufio"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dial opens a bare connection, on which a test sees each byte.
func dial(t *testing.T, addr string) *bareConn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, soon)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &bareConn{Conn: conn, t: t, r: bufio.NewReader(conn)}
}

type bareConn struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

func (c *bareConn) say(args ...string) {
	c.t.Helper()
	_, err := c.Write(encode(args))
	require.NoError(c.t, err)
}

func (c *bareConn) hears(want any) {
	c.t.Helper()
	require.NoError(c.t, c.SetReadDeadline(time.Now().Add(soon)))
	got, err := readReply(c.r)
	require.NoError(c.t, err)
	require.Equal(c.t, want, got)
}

func (c *bareConn) hearsNothing() {
	c.t.Helper()
	require.NoError(c.t, c.SetReadDeadline(time.Now().Add(hang)))
	_, err := c.r.Peek(1)
	require.ErrorIs(c.t, err, os.ErrDeadlineExceeded, "want silence")
	c.r.Reset(c.Conn) // forget the error
}

func TestALinkCarriesAClient(t *testing.T) {
	t.Parallel()
	server := Start(t)
	link := server.Proxy()
	client := server.Client(func(o *redis.Options) { o.Addr = link.Addr() })
	big := strings.Repeat("x", 4<<20)
	require.NoError(t, client.Set(t.Context(), "k", big, 0).Err())
	got, err := client.Get(t.Context(), "k").Result()
	require.NoError(t, err)
	if got != big { // no assert: it would print both
		t.Errorf("sent %d bytes and got %d, or others", len(big), len(got))
	}
}

func TestACutLinkHangsAndAHealedOneDeliversWhatWaited(t *testing.T) {
	t.Parallel()
	server := Start(t)
	link := server.Proxy()
	conn := dial(t, link.Addr())
	conn.say("PING")
	conn.hears("PONG")

	link.Cut()
	link.Cut() // harmless
	conn.say("SET", "k", "v")
	conn.hearsNothing()
	assert.Empty(t, server.Keys(), "no byte reaches the server")

	link.Heal()
	link.Heal() // harmless
	conn.hears("OK")
	assert.Equal(t, []string{"k"}, server.Keys())
}

func TestACutLinkDoesNotAnswerNewConnections(t *testing.T) {
	t.Parallel()
	server := Start(t)
	link := server.Proxy()
	link.Cut()
	patient, hasty := dial(t, link.Addr()), dial(t, link.Addr())
	hasty.say("SET", "hasty", "1")
	hasty.hearsNothing()
	require.Eventually(t, func() bool { return len(link.connections()) == 2 }, soon, pollInterval)
	require.NoError(t, hasty.Close())
	require.Eventually(t, func() bool { return len(link.connections()) == 1 }, soon, pollInterval)
	patient.say("SET", "patient", "1")
	patient.hearsNothing()

	link.Heal()
	patient.hears("OK")
	assert.Equal(t, []string{"patient"}, server.Keys(), "a connection that began and ended in the cut never was")
}

func TestARequestWhoseSenderHungUpArrivesAfterTheCut(t *testing.T) {
	t.Parallel()
	server := Start(t)
	link := server.Proxy()
	conn := dial(t, link.Addr())
	conn.say("PING")
	conn.hears("PONG")
	link.Cut()
	conn.say("SET", "late", "1")
	require.NoError(t, conn.Close())
	assert.Empty(t, server.Keys())

	link.Heal()
	require.Eventually(t, func() bool { return len(server.Keys()) == 1 }, soon, pollInterval)
}

func TestWithAnswersCutRequestsAreCarriedOut(t *testing.T) {
	t.Parallel()
	server := Start(t)
	link := server.Proxy()
	conn := dial(t, link.Addr())
	conn.say("PING")
	conn.hears("PONG")

	link.CutAnswers()
	conn.say("SET", "k", "v")
	require.Eventually(t, func() bool { return len(server.Keys()) == 1 }, soon, pollInterval)
	conn.hearsNothing()

	link.Heal()
	conn.hears("OK")
}

func TestWithRequestsCutAnswersStillCome(t *testing.T) {
	t.Parallel()
	server := Start(t)
	link := server.Proxy()
	conn := dial(t, link.Addr())
	conn.say("SUBSCRIBE", "news")
	conn.hears([]any{"subscribe", "news", int64(1)})

	link.CutRequests()
	require.NoError(t, server.Client().Publish(t.Context(), "news", "rain").Err())
	conn.hears([]any{"message", "news", "rain"})
	conn.say("PING")
	conn.hearsNothing()
}

func TestACutDoesNotWaitForAFrozenServer(t *testing.T) {
	t.Parallel()
	server := Start(t)
	link := server.Proxy()
	conn := dial(t, link.Addr())
	conn.say("PING")
	conn.hears("PONG")

	server.Pause()
	// More than the kernel buffers on the way hold, so that the link's write hangs.
	big := strings.Repeat("x", 24<<20)
	written := make(chan error, 1)
	go func() {
		_, err := conn.Write(encode([]string{"SET", "big", big}))
		written <- err
	}()
	require.Eventually(t, func() bool {
		if link.requests.sending.TryLock() { // nobody writes
			link.requests.sending.Unlock()
			return false
		}
		return true
	}, soon, pollInterval)
	link.Cut()
	server.Resume()
	conn.hearsNothing()

	link.Heal()
	conn.hears("OK")
	require.NoError(t, <-written)
	n, err := server.Client().StrLen(t.Context(), "big").Result()
	require.NoError(t, err)
	assert.Equal(t, int64(len(big)), n, "no byte is lost or doubled by a cut in the middle")
}

func TestDelayIsAddedInEachDirection(t *testing.T) {
	t.Parallel()
	const delay = 200 * time.Millisecond
	server := Start(t)
	link := server.Proxy()
	conn := dial(t, link.Addr())
	conn.say("PING")
	conn.hears("PONG")

	link.Delay(delay)
	begun := time.Now()
	const pings = 300 // in a pipeline: the delay is one of time, not of throughput
	for range pings {
		conn.say("PING")
	}
	for range pings {
		conn.hears("PONG")
	}
	took := time.Since(begun)
	assert.GreaterOrEqual(t, took, 2*delay)
	assert.Less(t, took, pings*delay)
}

func TestResetEndsConnectionsAndAllowsNewOnes(t *testing.T) {
	t.Parallel()
	server := Start(t)
	link := server.Proxy()
	conn := dial(t, link.Addr())
	conn.say("PING")
	conn.hears("PONG")

	link.Reset()
	_, err := conn.r.ReadByte()
	require.Error(t, err)

	again := dial(t, link.Addr())
	again.say("PING")
	again.hears("PONG")
}

func TestALinkToADeadServerEndsTheConnection(t *testing.T) {
	t.Parallel()
	server := Start(t)
	link := server.Proxy()
	open := dial(t, link.Addr())
	open.say("PING")
	open.hears("PONG")
	server.Kill()

	_, err := open.r.ReadByte()
	require.Error(t, err)
	_, err = dial(t, link.Addr()).r.ReadByte()
	require.Error(t, err)

	server.Restart()
	again := dial(t, link.Addr())
	again.say("PING")
	again.hears("PONG")
}

func TestClosingACutLinkLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	server := Start(t)
	link := server.Proxy()
	conn := dial(t, link.Addr())
	conn.say("PING")
	conn.hears("PONG")
	link.Delay(time.Hour)
	conn.say("PING")
	link.Cut()
	dial(t, link.Addr()).say("PING")

	link.Close() // returns: goleak in TestMain sees to the rest
	link.Close() // harmless
	_, err := net.DialTimeout("tcp", link.Addr(), soon)
	require.Error(t, err)
}

func TestOneReplicaIsCutOffAndAnotherIsNot(t *testing.T) {
	t.Parallel()
	fleet := StartFleet(t, 3)
	mine, theirs := fleet.Links(), fleet.Links()
	quick := func(o *redis.Options) {
		o.ReadTimeout = hang
		o.MaxRetries = -1
	}
	me, them := mine.Clients(quick), theirs.Clients()
	mine.Cut()
	for i := range fleet {
		require.Error(t, me[i].Ping(t.Context()).Err())
		require.NoError(t, them[i].Ping(t.Context()).Err())
	}
	mine.Heal()
	for i := range fleet {
		require.Eventually(t, func() bool { return me[i].Ping(t.Context()).Err() == nil }, soon, pollInterval)
	}
}
