package redlocktest

import "time"

// Stop crashes node i, as kill -9 does: connections are closed, commands that
// wait are lost, and new connections are refused. Its memory is kept, as on a
// disk that loses nothing, and TTLs go on running. A stopped node stays stopped.
func (f *Fleet) Stop(i int) {
	n := f.node(i)
	f.mu.Lock()
	defer f.mu.Unlock()
	n.stop()
}

// Restart starts node i with the memory it had, but for cached scripts; a
// running or hung node is stopped first. It has a new run ID and its uptime
// starts from 0. The machine stays as it was: clock, delay and partitions do not
// change.
func (f *Fleet) Restart(i int) {
	n := f.node(i)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.restart(n)
}

// RestartEmpty is [Restart] with the memory lost, as a node without persistence
// loses it.
func (f *Fleet) RestartEmpty(i int) {
	n := f.node(i)
	f.mu.Lock()
	defer f.mu.Unlock()
	n.stop()
	n.memory = newMemory(n.clock)
	f.restart(n)
}

func (f *Fleet) restart(n *node) {
	n.stop()
	if !f.closed {
		n.start(0)
	}
}

// Hang freezes node i, as SIGSTOP does: connections stay open and are accepted,
// nothing is answered, keys go on expiring. A stopped node does not hang.
func (f *Fleet) Hang(i int) { f.setHung(i, true) }

// Resume thaws node i, as SIGCONT does: all that it was sent meanwhile is
// processed, in order on each connection, even where the sender gave up.
func (f *Fleet) Resume(i int) { f.setHung(i, false) }

func (f *Fleet) setHung(i int, hung bool) {
	n := f.node(i)
	f.mu.Lock()
	defer f.mu.Unlock()
	if n.process != nil {
		n.process.setHung(hung)
	}
}

// Delay makes each answer of node i take d longer, counted from when the node
// sent it, so that the answers of a pipeline arrive together. It holds for
// published messages too, not for connecting. Answers do not overtake each
// other. 0, or less, ends it; what is on its way still takes its time.
func (f *Fleet) Delay(i int, d time.Duration) {
	n := f.node(i)
	f.mu.Lock()
	defer f.mu.Unlock()
	n.delay = max(d, 0)
	n.links.each(func(l *link) { l.setDelay(n.delay) })
}

// DelayRequests makes each request take d longer to reach node i, from every host. Requests on one
// connection do not overtake each other, but those of a connection that the client has given up
// still arrive, and may do so after later ones on a new connection. 0, or less, ends it; what is
// on its way still takes its time.
func (f *Fleet) DelayRequests(i int, d time.Duration) {
	n := f.node(i)
	f.mu.Lock()
	defer f.mu.Unlock()
	n.lag = max(d, 0)
	n.links.each(func(l *link) { l.setLag(n.lag) })
}

// Partition cuts the given nodes, or all if none is given, off from all hosts.
// Bytes are swallowed both ways, also those on their way, and so are the signs
// that a connection was closed; connecting blocks.
func (f *Fleet) Partition(nodes ...int) { f.setCut(true, nodes) }

// Heal ends what [Fleet.Partition] did for the given nodes, or for all if none
// is given. Connections that carried nothing meanwhile go on; those that lost
// something are reset on both sides. A partition made by [Host.Partition] stays.
func (f *Fleet) Heal(nodes ...int) { f.setCut(false, nodes) }

func (f *Fleet) setCut(cut bool, indexes []int) {
	nodes := f.pick(indexes)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range nodes {
		n.cut = cut
	}
	f.applyCuts(nodes)
}

// isCut tells whether a host, or nil for another process, is cut off from a
// node. Fleet.mu is held.
func (f *Fleet) isCut(h *Host, n *node) bool {
	return n.cut || h != nil && h.cut[n]
}

// applyCuts brings links and those who wait for one in line. Fleet.mu is held.
func (f *Fleet) applyCuts(nodes []*node) {
	for _, n := range nodes {
		n.links.each(func(l *link) { l.setCut(f.isCut(l.host, n)) })
	}
	if !f.closed {
		close(f.healed)
		f.healed = make(chan struct{})
	}
}

// SkewClock makes the clock of node i jump forward by d, or back if d is
// negative, so that its keys expire that much earlier or later, and what INFO
// and TIME say moves with it. Jumps add up.
func (f *Fleet) SkewClock(i int, d time.Duration) {
	n := f.node(i)
	f.mu.Lock()
	defer f.mu.Unlock()
	n.memory.skew(d)
}

// ClockRate makes the clock of node i run at this rate from now on: 1 is true
// time, 2 twice as fast, so that keys live half as long, and 0 stands still. It
// panics at a negative rate or one above a million.
func (f *Fleet) ClockRate(i int, rate float64) {
	checkRate(rate)
	n := f.node(i)
	f.mu.Lock()
	defer f.mu.Unlock()
	n.memory.setRate(rate)
}
