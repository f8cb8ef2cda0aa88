package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/test/rig"
)

// clientEnv has the configuration of a client process, as JSON. Where it is set, the binary is a
// client.
const clientEnv = "QUORATE_SOAK_CLIENT"

type clientConfig struct {
	Client   int // which of the clients
	Start    int // how often it was started before
	Nodes    []string
	Resource string
	Lib      string
	Ungated  bool // writes go past the gate
	Loads    []string
	TTL      time.Duration
	MaxTTL   time.Duration
	Seed     uint64
	Skew     time.Duration
	PPM      int64
}

// identity names the process in the owners of its locks.
func (c clientConfig) identity() string { return fmt.Sprintf("client-%d.%d", c.Client, c.Start) }

// client is one client process.
type client struct {
	clientConfig
	clock     *rig.Clock
	record    *recorder
	nodes     []redis.UniversalClient
	resource  *redis.Client
	contender contender
	careful   atomic.Bool // forgets to release nothing any more
}

// runClient is the life of a client process. It ends when it is told to stop, or when the harness
// is gone.
func runClient(text string) error {
	c := &client{record: &recorder{to: os.NewFile(3, "events")}}
	if err := json.Unmarshal([]byte(text), &c.clientConfig); err != nil {
		return fmt.Errorf("read the configuration in %s: %w", clientEnv, err)
	}
	c.clock = rig.NewClock(c.Skew, c.PPM)
	redis.SetLogger(silent{})
	slog.SetDefault(slog.New(slog.DiscardHandler))

	for _, addr := range c.Nodes {
		node := redis.NewClient(&redis.Options{Addr: addr}) // the default options have to do
		defer func() { _ = node.Close() }()
		c.nodes = append(c.nodes, node)
	}
	c.resource = redis.NewClient(&redis.Options{Addr: c.Resource})
	defer func() { _ = c.resource.Close() }()
	var err error
	if c.contender, err = c.newContender(); err != nil {
		return err
	}

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var loads sync.WaitGroup
	for _, load := range c.Loads {
		start, ok := map[string]func(context.Context, *sync.WaitGroup) error{
			"locks": c.locks, "guards": c.guards, "leaders": c.leaders, "ticks": c.ticks,
		}[load]
		if !ok {
			return fmt.Errorf("no load is called %q", load)
		}
		if err := start(ctx, &loads); err != nil {
			return fmt.Errorf("start the load %q: %w", load, err)
		}
	}
	c.record.write(event{Kind: ready})

	err = c.obey(ctx)
	stop()
	loads.Wait()
	c.contender.close()
	c.record.write(event{Kind: stopped})
	return err
}

// obey does what the harness says until that is to stop.
func (c *client) obey(ctx context.Context) error {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var cmd command
		if err := json.Unmarshal(lines.Bytes(), &cmd); err != nil {
			return fmt.Errorf("read a command: %w", err)
		}
		switch cmd.Op {
		case "clock":
			c.clock.Set(time.Duration(cmd.Skew), cmd.PPM)
		case "careful":
			c.careful.Store(true)
		case "cycles":
			if err := c.cycles(ctx, cmd.N); err != nil {
				return err
			}
		case "stop":
			return nil
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF // the harness is gone
}

func (c *client) newContender() (contender, error) {
	switch c.Lib {
	case "quorate":
		locker, err := redlock.New(c.nodes, redlock.WithTTL(c.TTL), redlock.WithMaxTTL(c.MaxTTL),
			redlock.WithClock(c.clock), redlock.WithIdentity(c.identity()))
		return quorate{locker}, err
	case "redsync":
		return newRedsync(c), nil
	case "redislock":
		return newRedislock(c), nil
	case "rueidislock":
		return newRueidislock(c)
	case "naive":
		return naive{c.nodes[0], c.TTL, c.identity()}, nil
	}
	return nil, fmt.Errorf("no library is called %q: see -help", c.Lib)
}

// rng is the source of a worker's choices: the same for the same seed and worker.
func (c *client) rng(worker uint64) *rand.Rand {
	return rand.New(rand.NewPCG(c.Seed, uint64(c.Client)<<32|uint64(c.Start)<<16|worker))
}

// until is the stamp at which a validity ends that is asked for now.
func (c *client) until(left func() time.Duration) int64 {
	now := rig.Stamp()
	return c.clock.Ends(now, left())
}

// pause waits, and tells whether ctx is still there.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// between is a random time.
func between(r *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(r.Int64N(int64(high-low)))
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

var (
	errOwnAccord = errors.New("failed of its own accord")
	errForgotten = errors.New("was not released")
)
