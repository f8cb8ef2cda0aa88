package redisserver

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy is a link to a server that can be cut, in one direction or both, and slowed.
//
// It behaves as a network between two TCP stacks does, which is why it is not toxiproxy: that
// one drops what arrives during a cut, so that a connection which outlives the cut has lost
// bytes from its middle, and TCP never does that. Here bytes wait, and the heal delivers
// them, even those of a client that has hung up since: this is how a request comes to arrive
// long after its sender has given up.
type Proxy struct {
	target   string
	listener net.Listener
	requests *wire // client to server
	answers  *wire // server to client
	workers  sync.WaitGroup

	ctx context.Context // ends with the link
	end context.CancelFunc

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// NewProxy starts a link to target, a host:port. It is closed when the test ends.
func NewProxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("redisserver: listen for a proxy to %s: %v", target, err)
	}
	p := &Proxy{target: target, listener: listener, conns: map[net.Conn]struct{}{}}
	p.ctx, p.end = context.WithCancel(context.Background())
	p.requests, p.answers = newWire(p.ctx.Done()), newWire(p.ctx.Done())
	p.workers.Go(p.accept)
	tb.Cleanup(p.Close)
	return p
}

// Addr is where clients connect to go through the link.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut stops all bytes, both ways: once it has returned, none passes. Connections stay open
// and hang. A new one is taken by the kernel, but nobody answers on it.
func (p *Proxy) Cut() {
	p.CutRequests()
	p.CutAnswers()
}

// CutRequests stops the bytes from clients to the server; answers still come.
func (p *Proxy) CutRequests() { p.requests.cut(p.connections) }

// CutAnswers stops the bytes from the server to clients: requests are carried out, and nobody
// hears of it.
func (p *Proxy) CutAnswers() { p.answers.cut(p.connections) }

// Heal ends every cut. What has waited is delivered, except for connections that began and
// ended during the cut: those never were.
func (p *Proxy) Heal() {
	p.requests.heal()
	p.answers.heal()
}

// Delay holds every byte for d in each direction, so that a round trip grows by 2 d. Zero ends
// it. Bytes already on the way keep the delay they had.
func (p *Proxy) Delay(d time.Duration) {
	p.requests.setDelay(d)
	p.answers.setDelay(d)
}

// Reset closes all connections from both sides, as a firewall does that has forgotten them.
// New ones work, unless the link is cut.
func (p *Proxy) Reset() {
	for _, conn := range p.connections() {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, not an orderly end
		}
		_ = conn.Close()
	}
}

// Close ends the link with all its connections and waits until nothing of it is left. Closing
// twice does nothing.
func (p *Proxy) Close() {
	p.end()
	_ = p.listener.Close()
	for _, conn := range p.connections() {
		_ = conn.Close()
	}
	p.workers.Wait()
}

func (p *Proxy) connections() []net.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]net.Conn, 0, len(p.conns))
	for conn := range p.conns {
		all = append(all, conn)
	}
	return all
}

// keep adds a connection to those that Reset and Close end, and tells whether it still may.
func (p *Proxy) keep(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		_ = conn.Close()
		return false
	}
	p.conns[conn] = struct{}{}
	return true
}

func (p *Proxy) drop(conn net.Conn) {
	_ = conn.Close()
	p.mu.Lock()
	delete(p.conns, conn)
	p.mu.Unlock()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // Close
		}
		if p.keep(client) {
			p.workers.Go(func() { p.serve(client) })
		}
	}
}

// serve carries one connection until both directions have ended.
func (p *Proxy) serve(client net.Conn) {
	defer p.drop(client)

	// Read from the start, also during a cut: only so is a client noticed that gives up.
	requests := newFlow(p.requests, client)
	p.workers.Go(requests.read)
	defer requests.stop()

	// The handshake needs both directions.
	if !p.requests.pass(requests.gone) || !p.answers.pass(requests.gone) {
		return
	}
	server, err := new(net.Dialer).DialContext(p.ctx, "tcp", p.target)
	if err != nil {
		return // the client sees its connection end where it would have been refused
	}
	defer p.drop(server)
	if !p.keep(server) {
		return
	}
	answers := newFlow(p.answers, server)
	p.workers.Go(answers.read)
	defer answers.stop()

	var both sync.WaitGroup
	both.Go(func() { requests.write(server) })
	both.Go(func() { answers.write(client) })
	both.Wait()
}
