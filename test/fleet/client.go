package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/test/rig"
)

// clientEnv has the configuration of a client process, as JSON. Where it is set, the binary is a
// client.
const clientEnv = "QUORATE_FLEET_CLIENT"

type clientConfig struct {
	Role     string // candidate, or the name of a contender with a crontab
	Replica  int
	Start    int // how often it was started before
	Nodes    []string
	Resource string
	TTL      time.Duration
	Skew     time.Duration
	Lasts    time.Duration // of a run
}

func (c clientConfig) identity() string {
	return fmt.Sprintf("%s-%d.%d", c.Role, c.Replica, c.Start)
}

// client is one client process.
type client struct {
	clientConfig
	record   *recorder
	clock    *rig.Clock
	nodes    []redis.UniversalClient
	resource *redis.Client
}

// runClient is the life of a client process. It ends when it is told to stop, by a command or by
// SIGTERM, or when the harness is gone.
func runClient(text string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c := &client{record: &recorder{to: os.NewFile(3, "events")}}
	if err := json.Unmarshal([]byte(text), &c.clientConfig); err != nil {
		return fmt.Errorf("read the configuration in %s: %w", clientEnv, err)
	}
	redis.SetLogger(silent{})
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	c.clock = rig.NewClock(c.Skew, 0)
	for _, addr := range c.Nodes {
		node := redis.NewClient(&redis.Options{Addr: addr})
		defer func() { _ = node.Close() }()
		c.nodes = append(c.nodes, node)
	}
	c.resource = redis.NewClient(&redis.Options{Addr: c.Resource})
	defer func() { _ = c.resource.Close() }()

	switch c.Role {
	case "candidate":
		return c.candidate(ctx, stop)
	case "quorate":
		return c.crontab(ctx, stop)
	case "gocron":
		return c.gocron(ctx, stop, redsyncLocker{redsync.New(goredis.NewPool(c.nodes[0])), c.TTL})
	case "gocron-quorate":
		return c.gocronLeased(ctx, stop)
	}
	return fmt.Errorf("no client is called %q", c.Role)
}

// locker is the client's, over all nodes.
func (c *client) locker() (*redlock.Locker, error) {
	return redlock.New(c.nodes, redlock.WithTTL(c.TTL), redlock.WithMaxTTL(c.TTL), redlock.WithClock(c.clock),
		redlock.WithIdentity(c.identity()))
}

// obey does what the harness says until that is to stop, and ends the client then.
func (c *client) obey(stop func(), do func(command)) {
	defer stop()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var cmd command
		if err := json.Unmarshal(lines.Bytes(), &cmd); err != nil || cmd.Op == "stop" {
			return
		}
		do(cmd)
	}
	os.Exit(1) // the harness is gone, so nobody waits for what would be wound up
}
