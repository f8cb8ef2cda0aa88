package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/test/rig"
)

const (
	election  = "chief"
	ledgerKey = "ledger:{chief}"
)

// entryScript writes what a leader writes: its token, so that the ledger shows in which order
// writes came.
const entryScript = `return redis.call('RPUSH', KEYS[1], ARGV[1])`

// candidate is the life of a process that campaigns.
type candidate struct {
	*client
	elector *leader.Elector
	gate    *fencing.RedisGate
	entry   *fencing.Script
	pause   atomic.Int64 // the term in which to stop before the next write, or 0
}

func (c *client) candidate(ctx context.Context, stop func()) error {
	locker, err := c.locker()
	if err != nil {
		return err
	}
	defer func() { _ = locker.Close() }()
	who := &candidate{client: c}
	if who.elector, err = leader.New(locker, election, leader.WithTTL(c.TTL)); err != nil {
		return err
	}
	if who.gate, err = fencing.NewRedisGate(c.resource); err != nil {
		return err
	}
	if who.entry, err = fencing.NewScript(entryScript); err != nil {
		return err
	}
	go c.obey(stop, func(cmd command) { who.do(ctx, cmd) })
	c.record.write(event{Kind: ready})
	return who.elector.Run(ctx, who.lead)
}

func (c *candidate) do(ctx context.Context, cmd command) {
	switch cmd.Op {
	case "ask":
		go c.ask(ctx, cmd.N)
	case "resign":
		c.record.write(event{Kind: resigning})
		go func() { _ = c.elector.Resign(ctx) }()
	case "pause":
		c.pause.Store(cmd.Token)
	}
}

// ask asks the nodes until they say who leads: then its connections are up.
func (c *candidate) ask(ctx context.Context, n int) {
	for {
		patience, cancel := context.WithTimeout(ctx, c.TTL)
		_, err := c.elector.Leader(patience)
		cancel()
		if err == nil {
			c.record.write(event{Kind: asked, N: n})
			return
		}
		if !pause(ctx, 10*time.Millisecond) {
			return
		}
	}
}

// lead is the leading function. It tells how long it may rely on its term, and writes.
func (c *candidate) lead(ctx context.Context, term leader.Term) error {
	begun := rig.Stamp()
	token := int64(term.Number)
	lease, ok := redlock.LeaseFrom(ctx)
	if !ok {
		return errors.New("a term has no lease")
	}
	until := c.until(lease)
	c.record.write(event{Kind: led, At: begun, Token: token, Until: until})
	ticker := time.NewTicker(c.TTL / 100)
	defer ticker.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		if later := c.until(lease); later > until+int64(time.Millisecond) {
			until = later
			c.record.write(event{Kind: held, Token: token, Until: until})
		}
		if i%4 == 0 || c.pause.Load() == token {
			c.write(ctx, term.Number, lease)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
	c.record.write(event{Kind: ended, Token: token, Err: fmt.Sprint(context.Cause(ctx))})
	return nil
}

// until is the stamp at which the validity ends, or a little earlier.
func (c *candidate) until(lease *redlock.Lease) int64 { return rig.Stamp() + int64(lease.Remaining()) }

// write writes under the term. Where the process is to be paused, that comes where no look at the
// clock can help: after the last one.
func (c *candidate) write(ctx context.Context, token redlock.Token, lease *redlock.Lease) {
	if ctx.Err() != nil {
		return
	}
	if c.pause.CompareAndSwap(int64(token), 0) {
		c.record.write(event{Kind: pausing, Token: int64(token), Until: c.until(lease)})
		if err := stopSelf(); err != nil {
			c.record.write(event{Kind: cut, Err: err.Error()})
			return
		}
	}
	// Not with the term's context: a request that is on its way is not called back either.
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*c.TTL)
	defer cancel()
	err := c.gate.Run(patience, election, token, c.entry, []string{ledgerKey}, int64(token)).Err()
	switch {
	case err == nil:
		c.record.write(event{Kind: wrote, Token: int64(token)})
	case errors.Is(err, fencing.ErrStaleToken):
		c.record.write(event{Kind: refused, Token: int64(token)})
	default:
		c.record.write(event{Kind: cut, Token: int64(token), Err: err.Error()})
	}
}
