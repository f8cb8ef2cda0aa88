package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/test/rig"
)

const lockWorkers = 2 // of each client

// lockNames are contended by all workers of all clients.
var lockNames = []string{"lock-0", "lock-1", "lock-2", "lock-3"}

// locks acquires, extends, saves, holds on for too long, forgets and releases.
func (c *client) locks(ctx context.Context, all *sync.WaitGroup) error {
	for worker := range uint64(lockWorkers) {
		all.Go(func() {
			r := c.rng(worker)
			for ctx.Err() == nil {
				c.contend(ctx, r)
				pause(ctx, between(r, 5*time.Millisecond, 40*time.Millisecond))
			}
		})
	}
	return nil
}

func (c *client) contend(ctx context.Context, r *rand.Rand) {
	name := lockNames[r.IntN(len(lockNames))]
	how := how{try: r.IntN(10) < 3, autoExtend: r.IntN(10) == 0}
	id := c.record.ask("lock", name)
	patience, cancel := context.WithTimeout(ctx, between(r, c.TTL/8, 3*c.TTL))
	h, err := c.contender.acquire(patience, name, how)
	cancel()
	if err != nil {
		c.record.refuse(id, err)
		return
	}
	c.tell(held, id, h)
	if m, ok := h.(mortal); ok { // it says no more than this of its validity
		released := make(chan struct{})
		defer close(released)
		go func() {
			select {
			case <-m.lost():
				c.record.end(id, errPeerLost)
			case <-released:
			}
		}()
	}

	if s, ok := h.(stateful); ok && r.IntN(2) == 0 {
		value := fmt.Sprintf("%d %s", h.token(), c.identity())
		c.record.write(event{Kind: saving, ID: id, Value: value})
		err := s.save(ctx, []byte(value))
		c.record.write(event{Kind: saved, ID: id, Value: value, Err: class(err)})
	}

	switch what := r.IntN(100); {
	case how.autoExtend:
		c.watch(ctx, id, h, between(r, c.TTL/8, 2*c.TTL))
	case what < 85: // a short use
		pause(ctx, between(r, time.Millisecond, 30*time.Millisecond))
	case what < 95: // a longer one
		for range 1 + r.IntN(4) {
			if !pause(ctx, c.TTL/4) {
				break
			}
			if err := h.extend(ctx); err != nil {
				break
			}
			c.tell(extended, id, h)
		}
	case what < 98: // one that does not look at the time
		pause(ctx, between(r, c.TTL/2, c.TTL*3/2))
	default: // one that forgets to release, and then stops to rely on it
		if left, known := h.left(); known && !c.careful.Load() && pause(ctx, left) {
			c.record.end(id, errForgotten)
			return
		}
	}
	c.release(id, h)
}

// tell tells what the holder is told.
func (c *client) tell(kind kind, id uint64, h holding) {
	known, value := false, ""
	until := c.until(func() (d time.Duration) {
		d, known = h.left()
		return d
	})
	if !known {
		until = 0
	}
	if s, ok := h.(stateful); ok && kind == held {
		value = string(s.state())
	}
	c.record.hold(kind, id, h.token(), until, value)
}

// watch holds on to something that is extended automatically.
func (c *client) watch(ctx context.Context, id uint64, h holding, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		if left, known := h.left(); known && left <= 0 {
			return
		}
		c.tell(extended, id, h)
		if !pause(ctx, c.TTL/10) {
			return
		}
	}
}

func (c *client) release(id uint64, h holding) {
	c.record.end(id, nil)
	// Not bound to the load's context: who is told to stop still releases.
	ctx, cancel := context.WithTimeout(context.Background(), 2*c.TTL)
	defer cancel()
	err := h.release(ctx)
	c.record.write(event{Kind: released, ID: id, Err: class(err)})
}

// cycles measures how long it takes to acquire a free name and release it, with a TTL as the
// libraries have by default: with one that is shorter than the read timeout of go-redis, some get
// nowhere at all while a node hangs.
func (c *client) cycles(ctx context.Context, n int) error {
	relaxed := &client{clientConfig: c.clientConfig, clock: c.clock, record: c.record, nodes: c.nodes}
	relaxed.TTL, relaxed.MaxTTL = redlock.DefaultTTL, redlock.DefaultMaxTTL
	contender, err := relaxed.newContender()
	if err != nil {
		return err
	}
	defer contender.close()
	for i := range n + 1 {
		begun := rig.Stamp()
		patience, cancel := context.WithTimeout(ctx, time.Minute)
		h, err := contender.acquire(patience, fmt.Sprintf("cycle-%d", i), how{})
		if err == nil {
			err = h.release(patience)
		}
		cancel()
		if i > 0 { // the first waits until restarted nodes count, and makes connections
			c.record.write(event{Kind: cycled, At: begun, Until: rig.Stamp(), Err: class(err)})
		}
	}
	return nil
}
