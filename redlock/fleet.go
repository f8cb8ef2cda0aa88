package redlock

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/quorum"
)

// A fleet is the N nodes of a Locker and their lanes.
type fleet struct {
	clock            Clock
	logger           *slog.Logger
	telemetry        *telemetry
	maxTTL           time.Duration
	nodeTimeout      time.Duration
	trustPersistence bool

	nodes []*node
	lanes []*lane

	start sync.Once
	met   atomic.Bool // the nodes were asked who they are

	mu   sync.Mutex
	same error // two nodes are one server, or nil
	exam exam
}

// ready starts the lanes at the first use, and waits until every node was asked who it is, or
// until a quorum was and the others had their chance. Its error is one that no retry mends.
func (f *fleet) ready(ctx context.Context) error {
	if f.met.Load() {
		return f.sameServer()
	}
	f.run()
	patience := time.NewTimer(f.nodeTimeout)
	defer patience.Stop()
	waited := false
	for _, l := range f.lanes {
		for !l.isKnown() && (!waited || f.answering() < quorum.Size(len(f.nodes))) {
			select {
			case <-l.known:
			case <-patience.C:
				waited = true
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	f.met.Store(true)
	return f.sameServer()
}

// run starts the lanes, the first time.
func (f *fleet) run() {
	f.start.Do(func() {
		for _, l := range f.lanes {
			go l.run()
		}
	})
}

func (f *fleet) answering() int {
	n := 0
	for _, l := range f.lanes {
		if l.isKnown() && l.isUp() {
			n++
		}
	}
	return n
}

// identify looks for two nodes that are one server.
func (f *fleet) identify(n *node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.same = nil
	owner := map[string]*node{}
	for _, m := range f.servers() {
		id := m.runID()
		if id == "" {
			continue
		}
		if first := owner[id]; first != nil && first.index != m.index {
			f.same = fmt.Errorf("redlock: %w: %s and %s both have run_id %s; give each server once, or the quorum is none", ErrSameServer, first.name, m.name, id)
			f.logger.Error("redlock: two nodes are the same server; refusing to work", "node", first.name, "other", m.name, "run_id", id)
		}
		owner[id] = m
	}
}

// servers are the nodes, and the shards of those that are clusters.
func (f *fleet) servers() []*node {
	var servers []*node
	for _, l := range f.lanes {
		if l.cluster == nil {
			servers = append(servers, l.node)
			continue
		}
		for _, s := range l.cluster.all() {
			servers = append(servers, s.node)
		}
	}
	return servers
}

func (f *fleet) sameServer() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.same
}

// ask puts one step to all nodes at the same time; where it is to be skipped, there is nothing to
// be done and the node counts as having done it. decided is called once, as soon as a quorum
// has voted for the step or no quorum can any more; each is called for every answer, also for
// those that come after that. Both run on the lanes and must not block.
func (f *fleet) ask(s step, each func(node int, a *answer), decided func(*ballot)) *ballot {
	b := &ballot{answers: make([]answer, len(f.lanes)), each: each, decided: decided}
	ops := make([]op, len(f.lanes))
	for i, l := range f.lanes {
		if s.skip.has(i) {
			b.record(i, answer{verdict: accepted})
			continue
		}
		ops[i] = op{step: s, done: func(a answer) { b.record(i, a) }}
		l.submit(&ops[i])
	}
	return b
}

// close ends the lanes. See lane.close for how long it may take.
func (f *fleet) close() {
	f.exam.end()
	defer f.exam.asking.Wait() // for the clients, whose own time limits bound that
	started := true
	f.start.Do(func() { started = false })
	if !started { // nobody waits for what will never be known
		for _, l := range f.lanes {
			l.shut()
		}
		return
	}
	var wg sync.WaitGroup
	for _, l := range f.lanes {
		wg.Go(func() { l.close(f.nodeTimeout) })
	}
	wg.Wait()
}
