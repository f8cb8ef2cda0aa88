package redlocktest

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// DefaultHost is the name of the host of [Fleet.Clients].
const DefaultHost = "default"

// Host is a machine on which clients run. It matters only for partitions: one
// host may be cut off from nodes that the others reach.
type Host struct {
	fleet *Fleet
	ip    net.IP
	cut   map[*node]bool // guarded by Fleet.mu
}

// Host returns the client machine with this name, made at its first use.
func (f *Fleet) Host(name string) *Host {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.hosts[name]
	if h == nil {
		k := len(f.hosts)
		h = &Host{fleet: f, ip: net.IPv4(10, 1, byte(k/250), byte(k%250+1)), cut: map[*node]bool{}}
		f.hosts[name] = h
	}
	return h
}

// Clients returns new clients of this host, in the order of the nodes: each a
// *redis.Client in go-redis' default options, but for the dialer, which
// connects in memory, for the pool, which is large, and for maintenance notifications, which are
// off. The fleet closes them in [Fleet.Close]; closing them earlier is fine.
func (h *Host) Clients() []redis.UniversalClient {
	clients := make([]redis.UniversalClient, h.fleet.Len())
	for i, addr := range h.fleet.Addrs() {
		c := redis.NewClient(&redis.Options{
			Addr: addr, Dialer: h.Dial,
			// Enough that nobody waits for a turn: go-redis keeps the timers of those who do for
			// later, and a timer of another bubble ends the program. By default it would be 10 for
			// each core, so that a test would depend on the machine.
			PoolSize: 1000,
			// Their handshake waits for a mutex while another connection's waits for its node,
			// and time in a bubble stands still while anyone waits for a mutex.
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		clients[i] = c
		h.fleet.own(c)
	}
	return clients
}

// own has the fleet close the client.
func (f *Fleet) own(c *redis.Client) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		_ = c.Close() // has never connected
		return
	}
	f.clients = append(f.clients, c)
}

// Dial connects this host to the node with the given address, in memory; it is
// meant for redis.Options.Dialer, where a test needs clients in options of its
// own. The network is ignored.
//
// A stopped node refuses. A hung one accepts. Behind a partition Dial blocks
// until ctx ends or the partition heals, as when SYNs are dropped.
func (h *Host) Dial(ctx context.Context, _, addr string) (net.Conn, error) {
	conn, err := h.dial(ctx, addr)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: fleetAddr(addr), Err: err}
	}
	return conn, nil
}

func (h *Host) dial(ctx context.Context, addr string) (net.Conn, error) {
	n := h.fleet.at(addr)
	if n == nil {
		return nil, errors.New("not the address of a node of this fleet")
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		conn, healed, err := h.tryDial(n)
		if conn != nil || err != nil {
			return conn, err
		}
		select {
		case <-healed:
		case <-ctx.Done():
		}
	}
}

// tryDial connects, fails, or returns what to wait for.
func (h *Host) tryDial(n *node) (net.Conn, <-chan struct{}, error) {
	f := h.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.isCut(h, n) || n.process == nil {
		f.blocked = true
	}
	switch {
	case f.closed:
		return nil, nil, net.ErrClosed
	case f.isCut(h, n):
		return nil, f.healed, nil
	case n.process == nil:
		return nil, nil, os.NewSyscallError("connect", syscall.ECONNREFUSED)
	}
	f.ports++
	local := &net.TCPAddr{IP: h.ip, Port: 1024 + f.ports%60000}
	return f.connect(h, n, local).client, nil, nil
}

// connect makes a connection to a running node. Fleet.mu is held.
func (f *Fleet) connect(h *Host, n *node, local net.Addr) *link {
	l := newLink(h, local, n.addr)
	l.gone = func() { n.links.remove(l) }
	l.delay, l.lag = n.delay, n.lag
	l.cut = f.isCut(h, n)
	l.server.arrived = n.process.memory.tick
	n.links.add(l)
	n.process.server.ServeConn(l.server)
	return l
}

func (f *Fleet) at(addr string) *node {
	for _, n := range f.nodes {
		if n.addr.String() == addr {
			return n
		}
	}
	return nil
}

// fleetAddr is an address in an error.
type fleetAddr string

func (fleetAddr) Network() string  { return "tcp" }
func (a fleetAddr) String() string { return string(a) }

// Partition cuts this host off from the given nodes, or from all if none is
// given, as [Fleet.Partition] does for all hosts.
func (h *Host) Partition(nodes ...int) { h.setCut(true, nodes) }

// Heal ends what [Host.Partition] did for the given nodes, or for all if none is
// given. A node that [Fleet.Partition] cut off from all hosts stays cut off.
func (h *Host) Heal(nodes ...int) { h.setCut(false, nodes) }

func (h *Host) setCut(cut bool, indexes []int) {
	nodes := h.fleet.pick(indexes)
	h.fleet.mu.Lock()
	defer h.fleet.mu.Unlock()
	for _, n := range nodes {
		h.cut[n] = cut
	}
	h.fleet.applyCuts(nodes)
}
