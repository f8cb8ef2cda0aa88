package redlocktest

import (
	"fmt"
	"time"
)

// Option changes how a fleet is built.
type Option func(*config)

type config struct {
	tcp     bool
	uptime  time.Duration
	observe func(node int, args []string)
}

// DefaultUptime is the uptime that nodes report at their first start: long
// enough that no restart rule keeps a fresh fleet from being used at once.
const DefaultUptime = time.Hour

// WithTCP makes each node listen on a free port of the loopback interface too,
// so that other processes, and clients with a dialer of their own, can connect.
// Such a fleet cannot be used in a testing/synctest bubble: real sockets keep
// the bubble's clock from moving.
//
// Clients made by [Fleet.Clients] and [Host.Clients] still connect in memory.
func WithTCP() Option {
	return func(c *config) { c.tcp = true }
}

// WithUptime sets the uptime that the nodes report when the fleet starts, in
// whole seconds as Redis does; [DefaultUptime] if the option is not given. With
// 0 the nodes look freshly started, so that a client which distrusts restarted
// nodes has to wait. After a restart a node always starts from 0.
func WithUptime(d time.Duration) Option {
	return func(c *config) { c.uptime = d }
}

// WithObserver has f called with every command that a client has sent, its name first, when the
// node is about to run it; not with those that scripts call. It is called by several goroutines,
// and must neither change args nor call methods of the fleet.
func WithObserver(f func(node int, args []string)) Option {
	return func(c *config) { c.observe = f }
}

func newConfig(n int, opts []Option) (config, error) {
	c := config{uptime: DefaultUptime}
	for _, opt := range opts {
		opt(&c)
	}
	if n < 1 {
		return c, fmt.Errorf("redlocktest: a fleet of %d nodes: give at least 1", n)
	}
	if c.uptime < 0 {
		return c, fmt.Errorf("redlocktest: uptime %v is negative: give 0 or more", c.uptime)
	}
	return c, nil
}
