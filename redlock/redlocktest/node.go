package redlocktest

import (
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// node is one machine of the fleet: its address, clock and connections stay
// when the process on it restarts. Fields without a lock of their own are
// guarded by Fleet.mu.
type node struct {
	index    int
	addr     *net.TCPAddr
	clock    *clock
	links    links
	commands atomic.Int64
	observe  func(node int, args []string) // may be nil

	memory  *memory
	process *process      // nil while stopped
	delay   time.Duration // of answers
	lag     time.Duration // of requests
	cut     bool          // from all hosts

	listener *net.TCPListener // nil without WithTCP
}

// start begins a new run of the node's server on the node's memory.
func (n *node) start(uptime time.Duration) {
	n.process = startProcess(n, n.memory, uptime)
}

// stop kills the running server, if there is one.
func (n *node) stop() {
	if n.process == nil {
		return
	}
	n.process.kill()
	n.process = nil
}

// links holds a node's connections in the order in which they were made, so
// that a fault strikes them in that order in every run of a simulation. It has
// a lock of its own because connections close while Fleet.mu is held by whoever
// stops their node.
type links struct {
	mu   sync.Mutex
	open []*link
}

func (s *links) add(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = append(s.open, l)
}

func (s *links) remove(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.open, l); i >= 0 {
		s.open = slices.Delete(s.open, i, i+1)
	}
}

func (s *links) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

func (s *links) each(f func(*link)) {
	s.mu.Lock()
	open := slices.Clone(s.open) // f may close links, which removes them
	s.mu.Unlock()
	for _, l := range open {
		f(l)
	}
}
