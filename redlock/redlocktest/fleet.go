package redlocktest

import (
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/redis/go-redis/v9"
)

// TB is the part of testing.TB that [Start] needs. It is an interface so that
// programs which use this package do not link package testing.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Fleet is a number of embedded Redis nodes. All methods may be called from
// several goroutines, but inside a testing/synctest bubble only from the bubble
// in which the fleet was made.
//
// Nodes are counted from 0. A method that is given the index of a node that
// does not exist panics, as indexing a slice does.
type Fleet struct {
	nodes []*node
	serve sync.WaitGroup // goroutines that serve TCP connections
	once  sync.Once
	err   error // of the first Close

	mu      sync.Mutex
	hosts   map[string]*Host
	clients []*redis.Client
	conns   map[net.Conn]struct{} // accepted from other processes
	ports   int                   // local ports given to clients so far
	closed  bool
	blocked bool          // some dial did not succeed at once
	healed  chan struct{} // closed, and replaced, when any cut heals and at Close
}

// Start starts a fleet of n nodes and closes it when the test ends. It fails the
// test where [New] returns an error.
func Start(tb TB, n int, opts ...Option) *Fleet {
	tb.Helper()
	f, err := New(n, opts...)
	if err != nil {
		tb.Fatalf("%v", err)
		return nil
	}
	tb.Cleanup(func() {
		if err := f.Close(); err != nil {
			tb.Fatalf("%v", err)
		}
	})
	return f
}

// New starts a fleet of n nodes, at least one. The caller closes it.
func New(n int, opts ...Option) (*Fleet, error) {
	c, err := newConfig(n, opts)
	if err != nil {
		return nil, err
	}
	f := &Fleet{
		hosts:  map[string]*Host{},
		conns:  map[net.Conn]struct{}{},
		healed: make(chan struct{}),
	}
	for i := range n {
		// IP literals, because go-redis looks names up, which a bubble does not survive.
		addr := &net.TCPAddr{IP: net.IPv4(10, 0, byte(i/250), byte(i%250+1)), Port: 6379}
		node := &node{index: i, addr: addr, clock: newClock(), observe: c.observe}
		node.memory = newMemory(node.clock)
		node.start(c.uptime)
		f.nodes = append(f.nodes, node)
		if c.tcp {
			if err := f.listen(node); err != nil {
				return nil, errors.Join(fmt.Errorf("redlocktest: node %d: %w", i, err), f.Close())
			}
		}
	}
	return f, nil
}

// Close closes all clients that the fleet has made and all nodes. When it
// returns no goroutine of the fleet is left. Further calls do nothing and return
// what the first one did.
func (f *Fleet) Close() error {
	f.once.Do(func() { f.err = f.shutDown() })
	return f.err
}

func (f *Fleet) shutDown() error {
	f.mu.Lock()
	f.closed = true
	close(f.healed)
	clients := f.clients
	f.clients = nil
	f.mu.Unlock()

	var errs []error
	for _, c := range clients {
		// The test may have closed it itself.
		if err := c.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
			errs = append(errs, fmt.Errorf("redlocktest: close client of %s: %w", c.Options().Addr, err))
		}
	}

	f.mu.Lock()
	for _, n := range f.nodes {
		if n.listener != nil {
			errs = append(errs, n.listener.Close())
		}
		n.stop()
	}
	for c := range f.conns {
		_ = c.Close() // whoever serves it closes it too
	}
	blocked := f.blocked
	f.mu.Unlock()
	f.serve.Wait()
	if blocked {
		quiesce()
	}
	return errors.Join(errs...)
}

// Len returns the number of nodes.
func (f *Fleet) Len() int { return len(f.nodes) }

// Addrs returns the addresses of the nodes, as host:port with an IP literal.
// Without [WithTCP] only [Host.Dial] can connect to them.
func (f *Fleet) Addrs() []string {
	addrs := make([]string, len(f.nodes))
	for i, n := range f.nodes {
		addrs[i] = n.addr.String()
	}
	return addrs
}

// URLs returns the addresses as redis:// URLs.
func (f *Fleet) URLs() []string {
	urls := f.Addrs()
	for i, addr := range urls {
		urls[i] = "redis://" + addr
	}
	return urls
}

// Clients returns new clients of the default host, one per node; see
// [Host.Clients].
func (f *Fleet) Clients() []redis.UniversalClient {
	return f.Host(DefaultHost).Clients()
}

func (f *Fleet) node(i int) *node {
	if i < 0 || i >= len(f.nodes) {
		panic(fmt.Sprintf("redlocktest: no node %d: the fleet has nodes 0 to %d", i, len(f.nodes)-1))
	}
	return f.nodes[i]
}

// pick returns the given nodes, or all if none is given.
func (f *Fleet) pick(indexes []int) []*node {
	if len(indexes) == 0 {
		return f.nodes
	}
	var nodes []*node
	for _, i := range indexes {
		nodes = append(nodes, f.node(i))
	}
	return nodes
}
