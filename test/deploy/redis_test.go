package deploy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
)

// A server is a redis-server with the files of deploy/redis, but for its address and directory.
type server struct {
	port   int
	client *redis.Client // logged in as the user quorate
}

func start(t *testing.T, moreUsers ...string) *server {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	require.NoError(t, err, "run make test, or install redis-server")
	conf, err := filepath.Abs(filepath.Join(root, "deploy/redis/redis.conf"))
	require.NoError(t, err)
	dir := t.TempDir()
	users := filepath.Join(dir, "users.acl")
	text := read(t, "deploy/redis/users.acl") + strings.Join(moreUsers, "\n")
	require.NoError(t, os.WriteFile(users, []byte(text), 0o600))

	for range 5 {
		s := &server{port: freePort(t)}
		log, err := os.Create(filepath.Join(dir, "log"))
		require.NoError(t, err)
		cmd := exec.Command(binary, conf, "--bind", "127.0.0.1", "--port", strconv.Itoa(s.port), "--dir", dir, "--aclfile", users)
		cmd.Stdout, cmd.Stderr = log, log
		require.NoError(t, cmd.Start())
		require.NoError(t, log.Close())
		exited := make(chan struct{})
		go func() {
			defer close(exited)
			_ = cmd.Wait() // what it says is in the log
		}()
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			<-exited
		})
		s.client = redis.NewClient(s.options("quorate", "change-me"))
		t.Cleanup(func() { _ = s.client.Close() })
		if s.answers(t, exited) {
			return s
		}
		said, err := os.ReadFile(filepath.Join(dir, "log"))
		require.NoError(t, err)
		require.Contains(t, string(said), "Address already in use", "redis-server ended")
	}
	require.Fail(t, "no free port in five tries")
	return nil
}

// answers waits until the server does, or has ended.
func (s *server) answers(t *testing.T, exited <-chan struct{}) (yes bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		select {
		case <-exited:
			return true
		default:
			yes = s.client.Ping(t.Context()).Err() == nil
			return yes
		}
	}, 20*time.Second, 10*time.Millisecond)
	return yes
}

func (s *server) options(user, password string) *redis.Options {
	return &redis.Options{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)), Username: user, Password: password}
}

func (s *server) as(t *testing.T, user, password string) *redis.Client {
	t.Helper()
	client := redis.NewClient(s.options(user, password))
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

func TestFiveNodesWithTheseFilesAreAFleetWithoutAWarning(t *testing.T) {
	var clients []redis.UniversalClient
	for range 5 {
		clients = append(clients, start(t).client)
	}
	// A fresh fleet serves after the maximum TTL: two seconds here, so that the test need not wait for ten.
	locker, err := redlock.New(clients, redlock.WithMaxTTL(2*time.Second), redlock.WithTTL(2*time.Second), redlock.WithNodeTimeout(time.Second),
		redlock.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = locker.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()

	var first redlock.Token
	require.NoError(t, locker.Do(ctx, "sku:42", func(ctx context.Context, lease *redlock.Lease) error {
		first = lease.Token()
		return errors.Join(lease.Save(ctx, []byte("state")), lease.Extend(ctx))
	}))
	require.NoError(t, locker.Do(ctx, "sku:42", func(_ context.Context, lease *redlock.Lease) error {
		assert.Greater(t, lease.Token(), first)
		assert.Equal(t, "state", string(lease.State()))
		return nil
	}))
	elector, err := leader.New(locker, "billing", leader.WithTTL(2*time.Second), leader.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	leading, stop := context.WithCancel(ctx)
	require.NoError(t, elector.Run(leading, func(context.Context, leader.Term) error {
		stop()
		return nil
	}))

	reports, err := locker.Check(ctx)
	require.NoError(t, err)
	for _, r := range reports {
		assert.True(t, r.Up, r.Node)
		require.NoError(t, r.Err, r.Node)
		assert.Empty(t, r.Warnings, r.Node)
		assert.NotEmpty(t, r.RunID, "%s: the restart rule needs it", r.Node)
	}
}

func TestTheRuleOfTheUserIsTheDocumentedOne(t *testing.T) {
	var documented, ours string
	for _, line := range settings(read(t, "docs/acl.md")) {
		if strings.HasPrefix(line, "user quorate on ") {
			documented = line
		}
	}
	for _, line := range settings(read(t, "deploy/redis/users.acl")) {
		if strings.HasPrefix(line, "user quorate ") {
			ours = line
		}
	}
	require.NotEmpty(t, documented)
	assert.Equal(t, documented, ours)
}

func TestWhoHasNoPasswordMayDoNothing(t *testing.T) {
	s := start(t)
	ctx := t.Context()
	stranger := s.as(t, "", "")
	require.ErrorContains(t, stranger.Ping(ctx).Err(), "NOAUTH")
	require.ErrorContains(t, s.as(t, "default", "").Get(ctx, "quorate:a").Err(), "NOAUTH")
	require.ErrorContains(t, s.as(t, "quorate", "guessed").Get(ctx, "quorate:a").Err(), "WRONGPASS")

	prober := s.as(t, "probe", "none")
	require.NoError(t, prober.Ping(ctx).Err())
	for _, command := range [][]any{{"get", "quorate:a"}, {"info"}, {"keys", "*"}, {"publish", "quorate:a", "x"}, {"config", "get", "*"}, {"flushall"}} {
		require.ErrorContains(t, prober.Do(ctx, command...).Err(), "NOPERM", command)
	}
	for _, command := range [][]any{{"flushall"}, {"keys", "*"}, {"config", "get", "*"}, {"replicaof", "no", "one"}, {"shutdown"}, {"get", "other"}} {
		assert.ErrorContains(t, s.client.Do(ctx, command...).Err(), "NOPERM", command)
	}
}

func TestANodeThatIsFullRefusesAndEvictsNothing(t *testing.T) {
	s := start(t, "user examiner on >examiner ~* &* +@all")
	eye, ctx := s.as(t, "examiner", "examiner"), t.Context()
	for setting, want := range map[string]string{"maxmemory-policy": "noeviction", "save": "", "appendonly": "no", "protected-mode": "yes"} {
		got, err := eye.ConfigGet(ctx, setting).Result()
		require.NoError(t, err)
		assert.Equal(t, want, got[setting], setting)
	}
	limit, err := eye.ConfigGet(ctx, "maxmemory").Result()
	require.NoError(t, err)
	assert.Equal(t, fmt.Sprint(maxMemory(t, readConf(t))), limit["maxmemory"])

	require.NoError(t, eye.Set(ctx, "quorate:a", "holder", time.Hour).Err())
	require.NoError(t, eye.ConfigSet(ctx, "maxmemory", "1").Err())
	require.ErrorContains(t, s.client.Set(ctx, "quorate:b", "x", time.Hour).Err(), "OOM")
	assert.Equal(t, "holder", eye.Get(ctx, "quorate:a").Val())
}

func TestTheProbeTellsANodeThatAnswers(t *testing.T) {
	s := start(t)
	ask := func(port int) ([]byte, error) {
		args := append([]string{"-p", strconv.Itoa(port)}, probe[1:]...)
		return exec.CommandContext(t.Context(), probe[0], args...).CombinedOutput()
	}
	out, err := ask(s.port)
	require.NoError(t, err, string(out))
	assert.Equal(t, "PONG\n", string(out))
	_, err = ask(freePort(t))
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "nobody listens there")
}

// The leader example as leader.yaml starts it, on these nodes, by the URLs that it is given there.
func TestTheLeaderExampleLeadsOnTheseNodes(t *testing.T) {
	var urls []string
	for range 5 {
		urls = append(urls, fmt.Sprintf("redis://quorate:change-me@127.0.0.1:%d", start(t).port))
	}
	program := filepath.Join(t.TempDir(), "leader-example")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-C", root+"/examples/telemetry", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, string(out))

	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(t)))
	var said strings.Builder
	cmd := exec.Command(program, "-replicas=1", "-for=0", "-mishaps=false", "-listen="+addr)
	cmd.Env = append(os.Environ(), "QUORATE_NODES="+strings.Join(urls, ","))
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	// A fresh fleet serves after the maximum TTL.
	led := assert.Eventually(t, func() bool { return strings.Contains(get(t, "http://"+addr+"/healthz"), `"leading":true`) }, 40*time.Second, 100*time.Millisecond)
	metrics := get(t, "http://"+addr+"/metrics")
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.NoError(t, <-exited, said.String())
	require.True(t, led, said.String())
	assert.Contains(t, metrics, "quorate_leader_leading")
	assert.NotContains(t, said.String(), "NOPERM", "its user may do all that it does")
}

// get is what a URL answers, or "".
func get(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return ""
	}
	defer func() { _ = response.Body.Close() }()
	body, _ := io.ReadAll(response.Body)
	return string(body)
}
