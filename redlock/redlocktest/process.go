package redlocktest

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

// process is one run of a node's server, from a start to the next crash.
type process struct {
	node    *node
	memory  *memory
	server  *server.Server
	runID   string
	started time.Time // by the node's clock

	mu    sync.Mutex
	cond  *sync.Cond // a cond, not a channel per hang: durable in a bubble either way
	hung  bool
	dead  bool
	peers map[*server.Peer]*manner // connections of clients, see outermost

	lua     *interpreter
	blocked atomic.Bool // some client has used a command that waits for data, see runsHere
}

// manner is how a client uses its connection.
type manner struct{ odd bool }

func startProcess(n *node, m *memory, uptime time.Duration) *process {
	// A miniredis that was closed has a cancelled context, which would end
	// blocking commands at once.
	m.redis.Ctx, m.redis.CtxCancel = context.WithCancel(context.Background())
	m.tick()

	// Dial starts a server that listens nowhere; the connection itself is not needed.
	conn, err := m.redis.Dial()
	if err != nil {
		panic("redlocktest: miniredis did not start, which without a listener it always does: " + err.Error())
	}
	_ = conn.Close()

	p := &process{
		node:    n,
		memory:  m,
		server:  m.redis.Server(),
		runID:   newRunID(),
		started: n.clock.now().Add(-uptime),
		peers:   map[*server.Peer]*manner{},
		lua:     newInterpreter(m.redis),
	}
	p.cond = sync.NewCond(&p.mu)
	// Scripts are not part of what Redis keeps on disk: clients meet NOSCRIPT.
	p.server.Dispatch(server.NewPeer(bufio.NewWriter(io.Discard)), []string{"SCRIPT", "FLUSH"})
	p.server.SetPreHook(p.hook)
	return p
}

func newRunID() string {
	b := make([]byte, 20)
	_, _ = rand.Read(b) // never fails, see crypto/rand
	return hex.EncodeToString(b)
}

// hook runs before every command, those that scripts call included.
func (p *process) hook(c *server.Peer, cmd string, args ...string) bool {
	if how := p.outermost(c); how != nil {
		if !p.pass() {
			return true // the process died while this command was waiting
		}
		p.node.commands.Add(1)
		if p.node.observe != nil {
			p.node.observe(p.node.index, append([]string{cmd}, args...))
		}
		if p.runsHere(how, cmd, args) {
			return p.lua.run(c, args)
		}
	}
	switch cmd {
	case "INFO":
		p.writeInfo(c, args)
	case "ROLE":
		writeRole(c)
	default:
		return false
	}
	return true
}

// runsHere tells whether a command is a script for our own interpreter. In a transaction, in
// another database, or where clients wait for data that a script may bring, the rules are
// miniredis' own.
func (p *process) runsHere(how *manner, cmd string, args []string) bool {
	switch cmd {
	case "EVALSHA":
		return !how.odd && !p.blocked.Load()
	case "EVAL":
		if len(args) > 0 {
			p.lua.learn(args[0])
		}
	case "SCRIPT":
		switch {
		case len(args) == 2 && strings.EqualFold(args[0], "load"):
			p.lua.learn(args[1])
		case len(args) > 0 && strings.EqualFold(args[0], "flush"):
			p.lua.forget()
		}
	case "MULTI", "SELECT", "AUTH", "RESET":
		how.odd = true
	case "BLPOP", "BRPOP", "BLMOVE", "BRPOPLPUSH", "BLMPOP", "BZPOPMIN", "BZPOPMAX", "BZMPOP", "XREAD", "XREADGROUP":
		p.blocked.Store(true)
	}
	return false
}

// outermost tells a client's command from one that a script calls, for which
// miniredis already holds its lock, and returns nil. A client's connection has no context at its
// first command; the stand-in connection of a script has one from the start.
func (p *process) outermost(c *server.Peer) *manner {
	p.mu.Lock()
	defer p.mu.Unlock()
	if how, ok := p.peers[c]; ok {
		return how
	}
	if c.Ctx != nil {
		return nil
	}
	how := &manner{}
	p.peers[c] = how
	c.OnDisconnect(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.peers, c)
	})
	return how
}

// pass blocks while the process hangs, and tells whether it is alive. The clock
// is read when bytes arrive, once for all commands in them, as Redis does; here
// it has to be read again, because those who waited have lost time.
func (p *process) pass() bool {
	waited, alive := p.await()
	if waited && alive {
		p.memory.tick()
	}
	return alive
}

func (p *process) await() (waited, alive bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.hung && !p.dead {
		waited = true
		p.cond.Wait()
	}
	return waited, !p.dead
}

func (p *process) setHung(hung bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hung = hung
	p.cond.Broadcast()
}

// kill ends the process: nothing that it had not yet begun will be done.
func (p *process) kill() {
	p.mu.Lock()
	p.dead = true
	p.cond.Broadcast()
	p.mu.Unlock()
	p.node.links.each(func(l *link) { _ = l.server.Close() }) // as the kernel does in its place
	p.memory.redis.Close()                                    // waits for the goroutines of all connections
}
