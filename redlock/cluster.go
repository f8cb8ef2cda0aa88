package redlock

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// A cluster is what is behind the lane of a node that is a whole Redis Cluster. Both keys of a name
// are in one slot, so each name lives on one of the cluster's servers, its shard; and each shard has
// a lane and a restart rule of its own, as if it were a node.
//
// Slots move. The servers move their keys with them, so a lock stays what it is. But a server that
// restarted empty may pass a slot on, without its locks, to one that has been up for long; and where a
// shard is lost, its slots are given to another, which starts with nothing. Neither can be told
// from a proper move. So a slot that another server serves than the one from which this client knows
// it does not count for the maximum TTL, as a node with a new run_id does not.
//
// go-redis knows who serves a key, and follows the cluster when it is told to look. It is not left
// to follow redirections: then nobody would know which server has answered.
type cluster struct {
	lane   *lane
	fleet  *fleet
	client *redis.ClusterClient

	met atomic.Bool // the servers were asked who they are, once

	mu       sync.Mutex
	shards   map[*redis.Client]*shard
	slots    []tenure // once met
	parked   []*op    // they wait for the next look
	patience *time.Timer
	suspect  error // why the servers are not known, or nil
	closed   bool

	wake     chan struct{}
	retiring sync.WaitGroup
}

// A shard is one master of a cluster, for as long as it serves slots.
type shard struct {
	node *node
	lane *lane
	told time.Duration // when it was last logged that it was given slots; guarded by the cluster's mu
}

// A tenure is who serves a slot, as far as this client knows.
type tenure struct {
	server     string        // address
	countsFrom time.Duration // votes count from this time of the clock on
}

func newCluster(l *lane, client *redis.ClusterClient) *cluster {
	return &cluster{
		lane: l, fleet: l.fleet, client: client,
		shards: map[*redis.Client]*shard{}, wake: make(chan struct{}, 1),
	}
}

// submit hands an op to the lane of its shard.
func (c *cluster) submit(o *op) { c.route(o, true) }

// route hands an op to the lane of its shard. If again, it is routed once more where the server
// turns out not to serve the slot.
func (c *cluster) route(o *op, again bool) {
	if !c.met.Load() {
		c.park(o)
		return
	}
	key := o.key(0)
	// No question to the cluster: its servers are known by now.
	master, err := c.client.MasterForKey(c.lane.ctx, key)
	if err != nil {
		o.done(answer{verdict: failed, err: err})
		return
	}
	s := c.shardOf(master)
	if s == nil {
		o.done(answer{verdict: failed, err: ErrClosed})
		return
	}
	inner := *o
	if o.script == releaseScript {
		inner.step = o.by(shardReleaseScript)
	}
	inner.done = func(a answer) { c.answered(o, slotOf(key), s, again, a) }
	s.lane.submit(&inner)
}

// answered takes a shard's answer.
func (c *cluster) answered(o *op, slot int, s *shard, again bool, a answer) {
	if a.verdict != failed {
		a.quarantine = max(a.quarantine, c.tenure(slot, s))
		o.done(a)
		return
	}
	switch {
	case c.isElsewhere(s, a.err):
		if again {
			c.park(o)
			return
		}
		c.look()
	case !isReply(a.err), redis.HasErrorPrefix(a.err, "CLUSTERDOWN"):
		c.look() // a replica may have taken over
	}
	a.err = fmt.Errorf("shard %s: %w", s.node.name, a.err)
	o.done(a)
}

// isElsewhere reports whether an error says that the server does not serve the slot. It has not carried
// out the step then. Not so ASK and TRYAGAIN: while a slot is on the move, its names are where one
// question finds them only in part, and the other nodes do.
func (c *cluster) isElsewhere(s *shard, err error) bool {
	if errors.Is(err, ErrClosed) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return !c.closed // only the shard's lane is
	}
	return redis.HasErrorPrefix(err, "MOVED") || errors.Is(err, ErrReplica)
}

// tenure is how long a slot's votes still do not count because of who served it before. It is asked
// when an answer is there, since only then it is certain that the server serves the slot.
func (c *cluster) tenure(slot int, s *shard) time.Duration {
	now := c.fleet.clock.Elapsed()
	c.mu.Lock()
	t := &c.slots[slot]
	left := t.server
	if left != s.node.name {
		t.server = s.node.name
		t.countsFrom = c.fleet.quarantineFrom(now)
	}
	wait := max(0, t.countsFrom-now)
	// Thousands may move together.
	news := left != s.node.name && wait > 0 && (s.told == 0 || now-s.told > time.Minute)
	if news {
		s.told = now
	}
	c.mu.Unlock()
	if news {
		c.fleet.logger.Info("redlock: slots have moved to another server of their cluster; its votes for them do not count for a while",
			"node", c.lane.node.name, "from", left, "to", s.node.name, "wait", wait)
	}
	return wait
}

// shardOf finds the shard of a master, or begins it. It returns nil once the cluster is closed.
//
// go-redis has a client for each address, and makes a new one where an address was gone for a while.
func (c *cluster) shardOf(master *redis.Client) *shard {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.shards[master]; s != nil || c.closed {
		return s
	}
	n := newNode(c.lane.node.index, master, c.fleet)
	s := &shard{node: n, lane: newLane(n, c.fleet)}
	for _, old := range c.shards {
		if old.node.name == n.name {
			n.succeed(old.node)
			c.retire(old)
		}
	}
	c.shards[master] = s
	go s.lane.run()
	if c.met.Load() {
		c.look() // others may serve nothing any more
	}
	return s
}

// retire ends a shard that serves no slot any more. It is guarded by mu.
func (c *cluster) retire(s *shard) {
	for client, other := range c.shards {
		if other == s {
			delete(c.shards, client)
		}
	}
	c.retiring.Go(func() { s.lane.close(c.fleet.nodeTimeout) })
}

// server is the address of who serves a key, or "" as long as that is not known.
func (c *cluster) server(key string) string {
	if c.met.Load() {
		if master, err := c.client.MasterForKey(c.lane.ctx, key); err == nil {
			return master.Options().Addr
		}
	}
	return ""
}

// reason is why the servers are not known.
func (c *cluster) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.suspect != nil {
		return c.suspect
	}
	return ErrNodeTimeout
}

// all are the shards in the order of their addresses.
func (c *cluster) all() []*shard {
	c.mu.Lock()
	defer c.mu.Unlock()
	shards := make([]*shard, 0, len(c.shards))
	for _, s := range c.shards {
		shards = append(shards, s)
	}
	slices.SortFunc(shards, func(a, b *shard) int { return strings.Compare(a.node.name, b.node.name) })
	return shards
}

// isUp reports whether all shards answered when they were last asked.
func (c *cluster) isUp() bool {
	return c.met.Load() && !slices.ContainsFunc(c.all(), func(s *shard) bool { return !s.lane.isUp() })
}

// close ends the cluster and its shards. See lane.close for how long it may take.
func (c *cluster) close(grace time.Duration) {
	c.shut()
	c.lane.stop()
	var closing sync.WaitGroup
	for _, s := range c.all() {
		closing.Go(func() { s.lane.close(grace) })
	}
	closing.Wait()
	<-c.lane.ended
	c.retiring.Wait()
}

// shut takes no more ops.
func (c *cluster) shut() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.giveUp(ErrClosed)
}
