package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/redlock"
)

// A contender is a lock library as one process uses it.
type contender interface {
	// lock waits until the name is held, or ctx ends.
	lock(ctx context.Context, name string) (holding, error)
	close()
}

// A holding is a lock that is held.
type holding struct {
	token  int64 // 0 where the library has none
	unlock func(ctx context.Context) error
}

// A library is the name of a contender, as it stands in tables.
type library string

const (
	quorate      library = "quorate"
	quorateBatch library = "quorate in batches" // the same, one guarded section for all who wait in a process
	redsyncLib   library = "redsync"
	redislockLib library = "redislock"
	rueidisLib   library = "rueidislock"              // as by default: a majority of three keys, on one server
	rueidisOne   library = "rueidislock (majority 1)" // the same guarantee as one node gives
	floor        library = "floor"
)

// times are the settings that a run with tiny sizes needs, so that it does not wait for nodes to have
// been up for the fleet's maximum TTL. Zero values are the libraries' defaults.
type times struct {
	TTL    time.Duration
	MaxTTL time.Duration
}

// open makes a contender that has connections of its own.
func open(lib library, nodes []string, t times) (contender, error) {
	switch lib {
	case quorate:
		return openQuorate(nodes, t)
	case redsyncLib:
		return openRedsync(nodes), nil
	case redislockLib:
		return openRedislock(nodes[0]), nil
	case rueidisLib:
		return openRueidislock(nodes[0], 2)
	case rueidisOne:
		return openRueidislock(nodes[0], 1)
	case floor:
		return openFloor(nodes), nil
	}
	return nil, fmt.Errorf("no library is called %q", lib)
}

// clients are connections with the default options of go-redis.
type clients []redis.UniversalClient

func dial(nodes []string) clients {
	all := make(clients, len(nodes))
	for i, addr := range nodes {
		all[i] = redis.NewClient(&redis.Options{Addr: addr})
	}
	return all
}

func (c clients) close() {
	for _, client := range c {
		_ = client.Close()
	}
}

// ours is this library.
type ours struct {
	nodes  clients
	locker *redlock.Locker
}

func openQuorate(nodes []string, t times) (*ours, error) {
	c := dial(nodes)
	locker, err := redlock.New(c, t.options()...)
	if err != nil {
		c.close()
		return nil, err
	}
	return &ours{c, locker}, nil
}

// options are none where the times are the defaults, but that nothing is logged: with a node that
// hangs, a line in the terminal would be in the figures.
func (t times) options() []redlock.Option {
	opts := []redlock.Option{redlock.WithLogger(slog.New(slog.DiscardHandler))}
	if t.TTL != 0 {
		opts = append(opts, redlock.WithTTL(t.TTL))
	}
	if t.MaxTTL != 0 {
		opts = append(opts, redlock.WithMaxTTL(t.MaxTTL))
	}
	return opts
}

func (o *ours) lock(ctx context.Context, name string) (holding, error) {
	lease, err := o.locker.Acquire(ctx, name)
	if err != nil {
		return holding{}, err
	}
	return holding{int64(lease.Token()), lease.Release}, nil
}

func (o *ours) close() {
	_ = o.locker.Close()
	o.nodes.close()
}
