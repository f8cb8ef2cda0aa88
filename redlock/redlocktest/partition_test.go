package redlocktest_test

import (
	"context"
	"io"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock/redlocktest"
)

func TestAPartitionSwallowsRequestsAndIsResetWhenItHeals(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, f *redlocktest.Fleet) {
		conn, err := f.Host("h").Dial(t.Context(), "tcp", f.Addrs()[0])
		require.NoError(t, err)
		defer conn.Close()
		before := f.Commands(0)

		f.Partition(0)
		_, err = conn.Write([]byte("*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n"))
		require.NoError(t, err, "the sender notices nothing")
		time.Sleep(time.Hour)
		assert.Equal(t, before, f.Commands(0))
		require.NoError(t, f.Clients()[1].Ping(t.Context()).Err(), "the others go on")

		f.Heal(0)
		_, err = conn.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		synctest.Wait()
		assert.Empty(t, f.Keys(0), "what was swallowed stays lost")
	})
}

func TestAPartitionLosesAnswersThatAreOnTheirWay(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		c := impatient(t, f.Host("h"), f, 0)
		require.NoError(t, c.Ping(t.Context()).Err())
		f.Delay(0, time.Second)
		result := make(chan error)
		go func() { result <- c.Set(within(t, 2*time.Second), "k", "v", 0).Err() }()
		synctest.Wait()
		f.Partition()
		require.ErrorIs(t, <-result, os.ErrDeadlineExceeded)
		assert.Equal(t, []string{"k"}, f.Keys(0), "the request had arrived")
	})
}

func TestConnectionsThatLostNothingGoOnAfterAPartition(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		conn, err := f.Host("h").Dial(t.Context(), "tcp", f.Addrs()[0])
		require.NoError(t, err)
		defer conn.Close()
		f.Partition()
		time.Sleep(time.Minute)
		f.Heal()
		_, err = conn.Write([]byte("*1\r\n$4\r\nPING\r\n"))
		require.NoError(t, err)
		answer := make([]byte, len("+PONG\r\n"))
		_, err = io.ReadFull(conn, answer)
		require.NoError(t, err)
		assert.Equal(t, "+PONG\r\n", string(answer))
	})
}

func TestDialBlocksBehindAPartition(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		h := f.Host("h")
		f.Partition(0)
		start := time.Now()
		_, err := h.Dial(within(t, 5*time.Second), "tcp", f.Addrs()[0])
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 5*time.Second, time.Since(start))

		time.AfterFunc(time.Minute, func() { f.Heal(0) })
		conn, err := h.Dial(t.Context(), "tcp", f.Addrs()[0])
		require.NoError(t, err)
		assert.Equal(t, 65*time.Second, time.Since(start))
		require.NoError(t, conn.Close())

		f.Partition(0)
		time.AfterFunc(time.Minute, func() { _ = f.Close() })
		_, err = h.Dial(t.Context(), "tcp", f.Addrs()[0])
		require.Error(t, err, "Close lets nobody wait for ever")
	})
}

func TestACrashBehindAPartitionIsSeenWhenItHeals(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		h := f.Host("h")
		conn, err := h.Dial(t.Context(), "tcp", f.Addrs()[0])
		require.NoError(t, err)
		defer conn.Close()
		f.Partition(0)
		f.RestartEmpty(0)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Second)))
		_, err = conn.Read(make([]byte, 1))
		require.ErrorContains(t, err, "timeout")
		f.Heal(0)
		require.NoError(t, conn.SetReadDeadline(time.Time{}))
		_, err = conn.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)
	})
}

func TestOneHostMayBeCutOffWhileOthersAreNot(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, f *redlocktest.Fleet) {
		a, b := f.Host("a"), f.Host("b")
		assert.Same(t, a, f.Host("a"))
		a.Partition(0, 1)
		ping := func(h *redlocktest.Host, i int) error {
			return impatient(t, h, f, i).Ping(within(t, time.Second)).Err()
		}
		require.Error(t, ping(a, 0))
		require.Error(t, ping(a, 1))
		require.NoError(t, ping(a, 2))
		require.NoError(t, ping(b, 0))
		a.Heal(1)
		require.NoError(t, ping(a, 1))
		f.Heal()
		require.Error(t, ping(a, 0), "the fleet's Heal is not the host's")
		a.Heal()
		require.NoError(t, ping(a, 0))
		a.Partition()
		for i := range 3 {
			require.Error(t, ping(a, i))
		}
		f.Partition()
		a.Heal()
		require.Error(t, ping(a, 0), "the host's Heal is not the fleet's")
	})
}
