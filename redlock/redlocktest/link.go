package redlocktest

import (
	"net"
	"sync"
	"time"
)

// link is one connection between a client and a node: two ends and the network
// between them, which may be slow, cut, or forget what it carried. Unlike
// net.Pipe it buffers without bound, so that a write to a node that does not
// read returns at once, as it does on a socket.
//
// Everything blocks on the cond, which a testing/synctest bubble sees through.
type link struct {
	host   *Host // nil for a connection from another process
	client *end
	server *end
	gone   func() // called once, when both ends are closed

	mu    sync.Mutex
	cond  *sync.Cond
	delay time.Duration // of answers
	lag   time.Duration // of requests
	cut   bool
	lost  bool // something was swallowed: the two ends no longer agree
	reset bool
}

func newLink(host *Host, client, server net.Addr) *link {
	l := &link{host: host}
	l.cond = sync.NewCond(&l.mu)
	l.client = &end{link: l, local: client, remote: server}
	l.server = &end{link: l, local: server, remote: client}
	l.client.peer, l.server.peer = l.server, l.client
	return l
}

// segment is something on its way to, or waiting at, one end.
type segment struct {
	data []byte
	fin  bool // the sender has closed; nothing follows
	due  time.Time
}

// send puts a segment on its way, unless the network swallows it. Segments are
// read in the order of sending, so that a shorter delay lets none overtake.
func (l *link) send(to *end, s segment) {
	if l.cut {
		l.lost = true
		return
	}
	s.due = time.Now()
	if to == l.client {
		s.due = s.due.Add(l.delay)
	} else {
		s.due = s.due.Add(l.lag)
	}
	to.inbox = append(to.inbox, s)
	l.cond.Broadcast()
}

func (l *link) setDelay(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = d
}

func (l *link) setLag(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lag = d
}

// setCut cuts or heals the link. What is in flight when it is cut is lost, and
// a link that has lost something is reset when it heals: the bytes that follow
// would not fit to those before.
func (l *link) setCut(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut == cut {
		return
	}
	l.cut = cut
	if cut {
		now := time.Now()
		l.client.dropInFlight(now)
		l.server.dropInFlight(now)
	} else if l.lost {
		l.reset = true
	}
	l.cond.Broadcast()
}
