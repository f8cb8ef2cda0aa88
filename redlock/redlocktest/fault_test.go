package redlocktest_test

import (
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock/redlocktest"
)

func TestAStoppedNodeRefusesAndKeepsItsMemory(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, f *redlocktest.Fleet) {
		c := f.Clients()[0]
		set(t, c, "long", "v", 10*time.Second)
		set(t, c, "short", "v", 2*time.Second)
		runID := f.RunID(0)

		f.Stop(0)
		f.Stop(0) // once more changes nothing
		require.ErrorIs(t, c.Ping(t.Context()).Err(), syscall.ECONNREFUSED)
		require.NoError(t, f.Clients()[1].Ping(t.Context()).Err(), "the others go on")
		assert.Empty(t, f.RunID(0))
		time.Sleep(3 * time.Second)
		assert.Equal(t, []string{"long"}, f.Keys(0), "TTLs run while it is down")

		f.Restart(0)
		require.Equal(t, "v", c.Get(t.Context(), "long").Val())
		assert.NotEqual(t, runID, f.RunID(0))
		assert.Equal(t, "0", info(t, c)["uptime_in_seconds"])
	})
}

func TestARestartForgetsScriptsButNotKeys(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		c := f.Clients()[0]
		sha, err := c.ScriptLoad(t.Context(), "return 1").Result()
		require.NoError(t, err)
		require.NoError(t, c.EvalSha(t.Context(), sha, nil).Err())
		set(t, c, "k", "v", 0)
		f.Restart(0)
		require.True(t, redis.HasErrorPrefix(c.EvalSha(t.Context(), sha, nil).Err(), "NOSCRIPT"))
		assert.Equal(t, []string{"k"}, f.Keys(0))
	})
}

func TestRestartEmptyLosesEverything(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		c := f.Clients()[0]
		for range 2 { // of a running node, then of a stopped one
			set(t, c, "k", "v", 0)
			runID := f.RunID(0)
			f.RestartEmpty(0)
			require.ErrorIs(t, c.Get(t.Context(), "k").Err(), redis.Nil)
			assert.Empty(t, f.Keys(0))
			assert.NotEqual(t, runID, f.RunID(0))
			f.Stop(0)
			f.Restart(0)
		}
	})
}

func TestPooledConnectionsSurviveARestartUnnoticed(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		c := f.Clients()[0].(*redis.Client)
		f.Delay(0, time.Second)
		for range 10 {
			go c.Ping(t.Context())
		}
		time.Sleep(5 * time.Second)
		require.Equal(t, uint32(10), c.PoolStats().IdleConns)
		f.Delay(0, 0)

		f.Restart(0)
		synctest.Wait()
		// More stale connections than the client retries: it has to tell that
		// they are dead before it uses them, as it can with sockets.
		start := time.Now()
		require.NoError(t, c.Ping(t.Context()).Err())
		assert.Zero(t, time.Since(start))
	})
}

func TestAHungNodeAnswersNothingUntilItIsResumed(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		h := f.Host("h")
		established := impatient(t, h, f, 0)
		set(t, established, "k", "0", 0)
		set(t, established, "short", "v", time.Second)
		before := f.Commands(0)

		f.Hang(0)
		require.ErrorIs(t, established.Set(within(t, 2*time.Second), "k", "1", 0).Err(), os.ErrDeadlineExceeded)
		conn, err := h.Dial(t.Context(), "tcp", f.Addrs()[0])
		require.NoError(t, err, "a hung node's kernel accepts")
		defer conn.Close()
		_, err = conn.Write([]byte("*3\r\n$3\r\nSET\r\n$1\r\nn\r\n$1\r\n1\r\n*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n"))
		require.NoError(t, err)
		synctest.Wait()
		assert.Equal(t, before, f.Commands(0))
		assert.Equal(t, []string{"k"}, f.Keys(0), "keys expire meanwhile")

		f.Resume(0)
		answers := make([]byte, len("+OK\r\n:2\r\n"))
		_, err = io.ReadFull(conn, answers)
		require.NoError(t, err)
		assert.Equal(t, "+OK\r\n:2\r\n", string(answers))
		synctest.Wait()
		value, _ := f.Get(0, "k")
		assert.Equal(t, "1", value, "also what a client that gave up had sent")
	})
}

func TestDefaultClientsTimeOutOnAHungNodeInFakeTime(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		c := f.Clients()[0]
		require.NoError(t, c.Ping(t.Context()).Err())
		f.Hang(0)
		start := time.Now()
		var timeout net.Error
		require.ErrorAs(t, c.Ping(t.Context()).Err(), &timeout)
		require.True(t, timeout.Timeout())
		assert.GreaterOrEqual(t, time.Since(start), c.(*redis.Client).Options().ReadTimeout)

		f.Resume(0)
		require.NoError(t, c.Ping(t.Context()).Err())
	})
}

func TestWhatWaitedInAHungNodeIsDoneAtTheTimeOfResume(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		c := f.Clients()[0]
		require.NoError(t, c.Ping(t.Context()).Err())
		f.Hang(0)
		result := make(chan error)
		go func() { result <- c.Set(t.Context(), "k", "v", time.Second).Err() }()
		time.Sleep(2 * time.Second)
		f.Resume(0)
		require.NoError(t, <-result)
		assert.Equal(t, time.Second, f.TTL(0, "k"))
	})
}

func TestBlockingCommandsBlockAfterARestartToo(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		f.Restart(0)
		start := time.Now()
		require.ErrorIs(t, f.Clients()[0].BLPop(t.Context(), 2*time.Second, "q").Err(), redis.Nil)
		assert.Equal(t, 2*time.Second, time.Since(start))
	})
}

func TestAConnectionToADeadProcessIsAtItsEnd(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		conn, err := f.Host("h").Dial(t.Context(), "tcp", f.Addrs()[0])
		require.NoError(t, err)
		defer conn.Close()
		f.Stop(0)
		_, err = conn.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.EPIPE)
		_, err = conn.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	})
}

func TestAHungNodeCanBeKilled(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		c := impatient(t, f.Host("h"), f, 0)
		require.NoError(t, c.Ping(t.Context()).Err())
		f.Hang(0)
		result := make(chan error)
		go func() { result <- c.Set(t.Context(), "k", "v", 0).Err() }()
		synctest.Wait()
		f.Restart(0)
		require.ErrorIs(t, <-result, io.EOF)
		assert.Empty(t, f.Keys(0), "what waited died with the process")
		require.NoError(t, c.Ping(t.Context()).Err(), "the new process does not hang")
	})
}

func TestDelayAddsToEachAnswerButOnceToAPipeline(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, f *redlocktest.Fleet) {
		clients := f.Clients()
		took := func(c redis.UniversalClient, n int) time.Duration {
			start := time.Now()
			_, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
				for range n {
					p.Incr(t.Context(), "n")
				}
				return nil
			})
			require.NoError(t, err)
			return time.Since(start)
		}
		for _, c := range clients {
			took(c, 1) // connects
		}
		f.Delay(0, 70*time.Millisecond)
		assert.Equal(t, 70*time.Millisecond, took(clients[0], 1))
		assert.Equal(t, 70*time.Millisecond, took(clients[0], 1000))
		assert.Zero(t, took(clients[1], 1), "the other node is as fast as ever")
		f.Delay(0, 0)
		assert.Zero(t, took(clients[0], 1))
	})
}

func TestAShorterDelayDoesNotReorderAnswers(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		conn, err := f.Host("h").Dial(t.Context(), "tcp", f.Addrs()[0])
		require.NoError(t, err)
		defer conn.Close()
		start := time.Now()
		for _, d := range []time.Duration{time.Second, 0} {
			f.Delay(0, d)
			_, err = conn.Write([]byte("*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n"))
			require.NoError(t, err)
			synctest.Wait()
		}
		answers := make([]byte, len(":1\r\n:2\r\n"))
		_, err = io.ReadFull(conn, answers)
		require.NoError(t, err)
		assert.Equal(t, ":1\r\n:2\r\n", string(answers))
		assert.Equal(t, time.Second, time.Since(start))
	})
}
