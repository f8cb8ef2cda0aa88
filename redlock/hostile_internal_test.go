package redlock

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// lying makes a Locker over three servers that give one answer to a script.
func lying(t *testing.T, about *script, answer string, opts ...Option) (l *Locker, asked *atomic.Int32, end func()) {
	t.Helper()
	asked = new(atomic.Int32)
	servers := make([]*liar, 3)
	for i := range servers {
		servers[i] = &liar{lie: func(command []string) []byte {
			if scriptOf(command) != about {
				return nil
			}
			if i == 0 {
				asked.Add(1)
			}
			return []byte(answer)
		}}
	}
	l, end = lockerOver(t, servers, opts...)
	return l, asked, end
}

// Where a fence is beyond what an int64 holds, a Redis whose Lua compares in doubles says so, and so
// must we.
func TestAFenceBeyondAllIntegersIsReportedAsSuch(t *testing.T) {
	for _, fence := range []string{"9223372036854775808", strings.Repeat("9", 100)} {
		synctest.Test(t, func(t *testing.T) {
			l, asked, end := lying(t, acquireScript, "*2\r\n:-1\r\n"+bulk(fence))
			defer end()
			_, err := l.Acquire(t.Context(), "name")
			require.ErrorIs(t, err, ErrTokensExhausted)
			require.ErrorContains(t, err, "the fence key is damaged: delete it on all nodes")
			synctest.Wait()
			require.EqualValues(t, 1, asked.Load())
		})
	}
}

// A release that is answered by nonsense is answered: to send it again, as one whose answer was
// lost, would bring the same nonsense, as fast as the network carries it.
func TestAReleaseThatIsAnsweredByNonsenseIsNotSentAgainAndAgain(t *testing.T) {
	for _, nonsense := range []string{"+OK\r\n", ":1\r\n", "*1\r\n:1\r\n", "*2\r\n:1\r\n$1\r\n0\r\n", "*2\r\n:7\r\n:0\r\n", "*0\r\n", "$3\r\nabc\r\n"} {
		synctest.Test(t, func(t *testing.T) {
			l, asked, end := lying(t, releaseScript, nonsense)
			defer end()
			lease, err := l.TryAcquire(t.Context(), "name")
			require.NoError(t, err)
			err = lease.Release(t.Context())
			require.ErrorIs(t, err, ErrNoQuorum)
			require.ErrorContains(t, err, "unexpected reply", "%q", nonsense)
			time.Sleep(time.Second)
			require.EqualValues(t, 1, asked.Load(), "%q", nonsense)
		})
	}
}

// A reply of megabytes is not repeated in errors.
func TestAReplyOfAnySizeMakesAShortError(t *testing.T) {
	huge := strings.Repeat("x", 1<<20)
	for about, answer := range map[*script]string{
		acquireScript: bulk(huge), inspectScript: "*3\r\n" + bulk("") + ":0\r\n" + bulk(huge), saveScript: "*2\r\n:-1\r\n" + bulk(huge),
	} {
		synctest.Test(t, func(t *testing.T) {
			l, _, end := lying(t, about, answer)
			defer end()
			lease, err := l.TryAcquire(t.Context(), "name")
			if err == nil {
				err = lease.Save(t.Context(), nil)
			}
			if err == nil {
				_, err = l.Inspect(t.Context(), "name")
			}
			require.ErrorIs(t, err, ErrNoQuorum)
			require.Less(t, len(err.Error()), 2000)
		})
	}
}

// Where the node's user may not do something, to look whether the node is up is no help.
func TestWhoLacksARightIsToldSo(t *testing.T) {
	for _, denial := range []string{
		"NOPERM this user has no permissions to run the 'evalsha' command",
		"ERR The user executing the script can't run this command or subcommand script: 41da29, on @user_script:13.",
		"ERR ACL failure in script: User quorate has no permissions to run the 'set' command script: 41da29, on @user_script:13.",
	} {
		synctest.Test(t, func(t *testing.T) {
			l, _, end := lying(t, acquireScript, "-"+denial+"\r\n")
			defer end()
			_, err := l.TryAcquire(t.Context(), "name")
			require.ErrorIs(t, err, ErrNoQuorum)
			require.ErrorContains(t, err, ":6379: "+denial)
			require.ErrorContains(t, err, "docs/acl.md")
			require.NotContains(t, err.Error(), "up and reachable")
		})
	}
}

// A server tells in INFO that it is a replica, or was one until a moment ago: it is no node, as the
// text shows in "Why failover-based implementations are not enough".
func TestSpecAReplicaIsNoInstanceAndAPromotedOneDoesNotCountAtFirst(t *testing.T) {
	for _, c := range []struct {
		info string
		err  error
	}{
		{"role:slave\r\nmaster_replid2:0\r\n", ErrReplica},
		{"role:master\r\nmaster_replid2:8f3c\r\n", ErrQuarantined},
		{"role:master\r\nmaster_replid2:0\r\n", nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			servers := make([]*liar, 3)
			for i := range servers {
				info := fmt.Sprintf("run_id:server %d\r\nuptime_in_seconds:100000\r\n%s", i, c.info)
				servers[i] = &liar{lie: func(command []string) []byte {
					if command[0] == "info" {
						return []byte(bulk(info))
					}
					return nil
				}}
			}
			l, end := lockerOver(t, servers)
			defer end()
			lease, err := l.TryAcquire(t.Context(), "name") // they would all vote for it
			if c.err != nil {
				require.ErrorIs(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.NoError(t, lease.Release(t.Context()))
		})
	}
}

// Wherever a node fails, what is said of it has no password: not the errors, the log, the reports of
// Check, or the spans.
func TestNothingThatIsSaidOfANodeHasItsPassword(t *testing.T) {
	const password = "pa55word"
	failures := map[string]*liar{
		"wrong password": {lie: func(command []string) []byte {
			return []byte("-WRONGPASS invalid username-password pair or user is disabled.\r\n")
		}},
		"no such user": {lie: func(command []string) []byte {
			if command[0] == "hello" || command[0] == "auth" {
				return []byte("-WRONGPASS invalid username-password pair\r\n")
			}
			return []byte("-NOAUTH Authentication required.\r\n")
		}},
		"no permission": {lie: func(command []string) []byte {
			if scriptOf(command) != nil {
				return []byte("-NOPERM User quorate has no permissions to run the 'evalsha' command\r\n")
			}
			return nil
		}},
		"nonsense": {lie: func([]string) []byte { return []byte("HTTP/1.1 400 Bad Request\r\n\r\n") }},
		"hangs":    {lie: func([]string) []byte { return []byte{} }},
		"hangs up": {lie: func([]string) []byte { return []byte{} }, hangUp: true},
		"refuses":  nil,
	}
	for name, server := range failures {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				spans := tracetest.NewSpanRecorder()
				tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
				options, err := redis.ParseURL("redis://quorate:" + password + "@10.0.0.1:6379/0")
				require.NoError(t, err)
				options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
				options.Dialer = refuse
				if server != nil {
					options.Dialer = server.dial
				}
				client := redis.NewClient(options)
				defer time.Sleep(5 * time.Second) // in which goroutines of the client's end that still try to dial
				defer client.Close()
				l, err := New([]redis.UniversalClient{client}, WithLogger(slog.New(slog.NewTextHandler(&log, nil))), WithTracerProvider(tracers))
				require.NoError(t, err)
				said := []string{}
				_, err = l.TryAcquire(t.Context(), "name")
				require.Error(t, err)
				said = append(said, fmt.Sprintf("%v %+v %#v", err, err, err))
				_, err = l.Inspect(t.Context(), "name")
				said = append(said, fmt.Sprint(err))
				reports, err := l.Check(t.Context())
				said = append(said, fmt.Sprintf("%v %+v", err, reports))
				require.NoError(t, l.Close())
				synctest.Wait()
				said = append(said, log.String())
				for _, span := range spans.Ended() {
					said = append(said, fmt.Sprint(span.Attributes(), span.Events(), span.Status()))
				}
				require.NotEmpty(t, spans.Ended())
				for _, text := range said {
					require.NotContains(t, text, password)
				}
				require.Contains(t, said[0], "10.0.0.1:6379", "but which node it is")
			})
		})
	}
}

func refuse(context.Context, string, string) (net.Conn, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}
