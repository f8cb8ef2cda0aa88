package redlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// A survey finds out who serves what in a cluster: first of all, and whenever a server turns out not to
// serve what it did. Ops that need to know wait for it, for at most the node timeout.

// park keeps an op for the next look at the cluster, for at most the node timeout.
func (c *cluster) park(o *op) {
	c.mu.Lock()
	var err error
	switch {
	case c.closed:
		err = ErrClosed
	case c.suspect != nil:
		err = fmt.Errorf("%w: %w", ErrNodeSuspect, c.suspect)
	case len(c.parked) >= maxQueue:
		err = ErrNodeBusy
	default:
		c.parked = append(c.parked, o)
		if c.patience == nil {
			c.await(c.fleet.nodeTimeout)
		}
	}
	c.mu.Unlock()
	if err != nil {
		o.done(answer{verdict: failed, err: err})
		return
	}
	c.look()
}

// await bounds the wait for a look. It is guarded by mu.
func (c *cluster) await(d time.Duration) {
	c.patience = time.AfterFunc(d, func() { c.giveUp(ErrNodeTimeout) })
}

// unpark takes the ops that wait for a look. It is guarded by mu.
func (c *cluster) unpark() []*op {
	if c.patience != nil {
		c.patience.Stop()
		c.patience = nil
	}
	parked := c.parked
	c.parked = nil
	return parked
}

// giveUp fails the ops that wait for a look. Releases among them go out all the same when it is had.
func (c *cluster) giveUp(err error) {
	c.mu.Lock()
	parked := c.unpark()
	if !c.met.Load() {
		c.suspect = err
	}
	for _, o := range parked {
		if o.isRelease() && !c.closed {
			late := *o
			late.done = func(answer) {}
			c.parked = append(c.parked, &late)
		}
	}
	c.mu.Unlock()
	for _, o := range parked {
		o.done(answer{verdict: failed, err: err})
	}
	c.lane.once.Do(func() { close(c.lane.known) })
}

// look asks for a look at who serves what.
func (c *cluster) look() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// run looks at the cluster when it is asked to, and not all the time where that does not help.
func (c *cluster) run() {
	c.mu.Lock()
	if c.patience == nil && !c.closed {
		c.await(max(c.fleet.nodeTimeout, connectTimeout))
	}
	c.mu.Unlock()
	retry := newBackoff(10*time.Millisecond, time.Second)
	for c.lane.ctx.Err() == nil {
		begin := time.Now()
		err := c.survey()
		if err != nil {
			c.giveUp(lateness(err))
		} else {
			select {
			case <-c.wake:
			case <-c.lane.ctx.Done():
			}
		}
		if time.Since(begin) > 10*time.Second {
			retry.Reset()
		}
		c.lane.pause(retry.NextBackOff())
	}
}

// survey finds out who serves what, and sends what has waited for that.
func (c *cluster) survey() error {
	var mu sync.Mutex
	masters := map[*redis.Client]bool{}
	err := c.client.ForEachMaster(c.lane.ctx, func(_ context.Context, master *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		masters[master] = true
		return nil
	})
	if err == nil && len(masters) == 0 {
		err = errors.New("no server of the cluster serves any slot")
	}
	if err != nil {
		return err
	}
	for master := range masters {
		c.shardOf(master)
	}
	if !c.met.Load() {
		c.meet()
	}
	c.mu.Lock()
	for master, s := range c.shards {
		if !masters[master] && !c.closed {
			c.retire(s)
		}
	}
	c.suspect = nil
	parked := c.unpark()
	c.mu.Unlock()
	c.lane.once.Do(func() { close(c.lane.known) })
	for _, o := range parked {
		c.route(o, false)
	}
	return nil
}

// meet takes note of who serves each slot. A slot may have come from any other server of the
// cluster a moment ago, and from one that had just lost it all. So for this client, which knows nothing
// of the past, no slot counts before the youngest of the servers does.
func (c *cluster) meet() {
	youngest := time.Duration(0)
	for _, s := range c.all() {
		select {
		case <-s.lane.known:
		case <-c.lane.ctx.Done():
			return
		}
		youngest = max(youngest, s.node.memoryFrom())
	}
	slots := make([]tenure, slotCount)
	for slot, key := range slotKeys() {
		// A slot that nobody serves has a server at random, which will not be the one that answers.
		if master, err := c.client.MasterForKey(c.lane.ctx, key); err == nil {
			slots[slot] = tenure{server: master.Options().Addr, countsFrom: youngest}
		}
	}
	c.mu.Lock()
	c.slots = slots
	c.mu.Unlock()
	c.met.Store(true)
}
