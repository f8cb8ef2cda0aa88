package redlock

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAReplicaIsNotAskedAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		servers := []*liar{{}, {}, {}}
		servers[0].lie = func(command []string) []byte {
			switch {
			case command[0] == "info":
				return []byte(bulk("run_id:replica\r\nuptime_in_seconds:100000\r\nrole:slave\r\n"))
			case scriptOf(command) != nil:
				if asked.Add(1) > 1000 {
					panic("asked 1000 times")
				}
				return []byte("-READONLY You can't write against a read only replica.\r\n")
			}
			return nil
		}
		l, end := lockerOver(t, servers)
		defer end()
		lease, err := l.TryAcquire(t.Context(), "name")
		require.NoError(t, err, "a minority")
		require.NoError(t, lease.Release(t.Context()))
		time.Sleep(time.Second)
		before := asked.Load()
		time.Sleep(10 * time.Second)
		require.Equal(t, before, asked.Load(), "nobody has asked for anything since")
	})
}

func TestAReplyThatMakesTheClientPanicIsTheNodesFault(t *testing.T) {
	const announcesTooMuch = "$9223372036854775807\r\n"
	synctest.Test(t, func(t *testing.T) {
		l, _, end := lying(t, acquireScript, announcesTooMuch)
		defer end()
		_, err := l.TryAcquire(t.Context(), "name")
		require.ErrorIs(t, err, ErrNoQuorum)
		require.ErrorContains(t, err, "client panicked")
	})
	synctest.Test(t, func(t *testing.T) { // where it is asked who it is
		servers := []*liar{{}, {}, {}}
		servers[0].lie = func(command []string) []byte {
			if strings.EqualFold(command[0], "info") {
				return []byte(announcesTooMuch)
			}
			return nil
		}
		l, end := lockerOver(t, servers)
		defer end()
		lease, err := l.TryAcquire(t.Context(), "name")
		require.NoError(t, err, "a minority")
		require.NoError(t, lease.Release(t.Context()))
	})
}

func TestANodeThatRefusesSubscriptionsIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &guarded{}
		servers := []*liar{{}, {}, {}}
		servers[1].lie = func(command []string) []byte {
			if strings.EqualFold(command[0], "subscribe") {
				return []byte("-NOPERM this user has no permissions to run the 'subscribe' command\r\n")
			}
			return nil
		}
		l, end := lockerOver(t, servers, WithLogger(slog.New(slog.NewTextHandler(log, nil))))
		defer end()
		watch := l.watches.open("channel")
		time.Sleep(time.Minute)
		watch.Close()
		require.Equal(t, 1, strings.Count(log.String(), "refuses subscriptions"), "%s", log)
		require.Contains(t, log.String(), "10.0.0.2:6379")
	})
}

// guarded is a buffer for several goroutines.
type guarded struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (g *guarded) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.buf.Write(b)
}

func (g *guarded) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.buf.String()
}

func TestAWallClockBeyondTheLargestTokenIsReported(t *testing.T) {
	var tokens tokens
	_, err := tokens.next(time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC), 0)
	require.ErrorIs(t, err, ErrTokensExhausted)
	require.ErrorContains(t, err, "the wall clock says 2300")
	token, err := tokens.next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 0)
	require.NoError(t, err, "and has done no harm")
	require.Less(t, token, maxToken)
}
