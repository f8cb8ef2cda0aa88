package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

// beQuorate, in the environment, has the test's binary be the command.
const beQuorate = "TEST_BE_QUORATE"

// patience is how long a test waits for what must happen.
const patience = time.Minute

func TestMain(m *testing.M) {
	if code, is := besides(os.Args); is {
		os.Exit(code)
	}
	if os.Getenv(beQuorate) != "" {
		main()
		os.Exit(0)
	}
	logging.Disable() // go-redis reports each dial that a fault makes fail
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "QUORATE_") {
			_ = os.Unsetenv(name) // somebody's own fleet
		}
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // each of the processes would end a second later
	goleak.VerifyTestMain(m)
}

// A buffer may be written to and read at the same time.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
	see  func(written string) // or nil
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.see != nil {
		b.see(string(p))
	}
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// A call is a command line that is carried out in this process.
type call struct {
	t       *testing.T
	console *console
	out     *buffer
	err     *buffer
	ctx     context.Context
	signals chan os.Signal // goes to the command, as if the process had got it
	code    chan int
}

// begin begins to carry out a command line, on the nodes if there are any.
func begin(t *testing.T, f *redlocktest.Fleet, args ...string) *call {
	t.Helper()
	return newCall(t).begin(f, args...)
}

func newCall(t *testing.T) *call {
	c := &call{t: t, ctx: context.Background(), out: &buffer{}, err: &buffer{}, signals: make(chan os.Signal), code: make(chan int, 1)}
	c.console = &console{
		in: strings.NewReader(""), out: c.out, err: c.err,
		interactive: func() bool { return false },
		notify: func(to chan<- os.Signal, _ ...os.Signal) {
			go func() {
				for s := range c.signals {
					to <- s
				}
			}()
		},
	}
	return c
}

func (c *call) begin(f *redlocktest.Fleet, args ...string) *call {
	line := []string{"quorate"}
	if f != nil {
		line = append(line, "--nodes", strings.Join(f.URLs(), ","))
	}
	go func() {
		c.code <- c.console.run(c.ctx, append(line, args...))
		close(c.signals)
	}()
	return c
}

// end waits for the exit code.
func (c *call) end() int {
	c.t.Helper()
	select {
	case code := <-c.code:
		return code
	case <-time.After(patience):
		require.FailNow(c.t, "the command does not end", "stdout: %s\nstderr: %s", c.out, c.err)
		return 0
	}
}

// prints waits until stdout has a text.
func (c *call) prints(text string) {
	c.t.Helper()
	require.Eventually(c.t, func() bool { return strings.Contains(c.out.String(), text) }, patience, time.Millisecond,
		"stdout lacks %q", text)
}

// says waits until stderr has a text.
func (c *call) says(text string) {
	c.t.Helper()
	require.Eventually(c.t, func() bool { return strings.Contains(c.err.String(), text) }, patience, time.Millisecond,
		"stderr lacks %q", text)
}

// quorate carries out a command line to its end.
func quorate(t *testing.T, f *redlocktest.Fleet, args ...string) (code int, out, err string) {
	t.Helper()
	c := begin(t, f, args...)
	code = c.end()
	return code, c.out.String(), c.err.String()
}

// process is a quorate of its own, not started yet.
func process(t *testing.T, f *redlocktest.Fleet, args ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Args[0] = "quorate"
	cmd.Env = append(os.Environ(), beQuorate+"=1")
	if f != nil {
		cmd.Env = append(cmd.Env, "QUORATE_NODES="+strings.Join(f.URLs(), ","))
	}
	cmd.WaitDelay = time.Second
	return cmd
}

// newFleet is three nodes that other processes reach as well.
func newFleet(t *testing.T, opts ...redlocktest.Option) *redlocktest.Fleet {
	t.Helper()
	return redlocktest.Start(t, 3, append(opts, redlocktest.WithTCP())...)
}

// newLocker is somebody else's.
func newLocker(t *testing.T, f *redlocktest.Fleet, opts ...redlock.Option) *redlock.Locker {
	t.Helper()
	all := append([]redlock.Option{redlock.WithIdentity("somebody"), redlock.WithLogger(slog.New(slog.DiscardHandler)), lenient()}, opts...)
	locker, err := redlock.New(f.Clients(), all...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = locker.Close() })
	return locker
}

// requireFree checks that anybody can have the name: a node that is not needed for that may hear of the
// release a moment later.
func requireFree(t *testing.T, f *redlocktest.Fleet, name string) {
	t.Helper()
	var holders []string
	for i := range f.Len() {
		if holder, held := f.Get(i, redlock.DefaultKeyPrefix+name); held {
			holders = append(holders, holder)
		}
	}
	require.Less(t, len(holders), f.Len()/2+1, "%q is held by %s", name, holders)
}

// free deletes the lock of a name from all nodes.
func free(t *testing.T, f *redlocktest.Fleet, name string) {
	t.Helper()
	for _, client := range f.Clients() {
		require.NoError(t, client.(*redis.Client).Del(t.Context(), redlock.DefaultKeyPrefix+name).Err())
		require.NoError(t, client.Close())
	}
}

// urls are nodes on the command line.
func urls(addresses ...string) string {
	var all []string
	for _, address := range addresses {
		all = append(all, fmt.Sprintf("redis://%s", address))
	}
	return strings.Join(all, ",")
}
