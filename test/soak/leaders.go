package main

import (
	"context"
	"sync"
	"time"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/test/rig"
)

const election = "chief"

// leaders has the client be a candidate, lead for a while, and ask whether it leads.
func (c *client) leaders(ctx context.Context, all *sync.WaitGroup) error {
	q := c.contender.(quorate)
	elector, err := leader.New(q.locker, election, leader.WithTTL(c.TTL))
	if err != nil {
		return err
	}
	all.Go(func() {
		r := c.rng(200)
		id := c.record.ask("term", election)
		_ = elector.Run(ctx, func(term context.Context, t leader.Term) error {
			mine := id
			c.tellLease(term, held, mine)
			c.lead(term, mine, between(r, c.TTL/4, 4*c.TTL))
			c.record.end(mine, context.Cause(term))
			id = c.record.ask("term", election)
			if r.IntN(4) == 0 {
				return errOwnAccord
			}
			return nil
		})
	})
	all.Go(func() {
		for pause(ctx, c.TTL/20) {
			begun := rig.Stamp()
			if elector.IsLeader() {
				c.record.write(event{Kind: leading, Start: begun, Name: election})
			}
		}
	})
	return nil
}

// lead relies on the term until its context ends, or of its own accord.
func (c *client) lead(term context.Context, id uint64, d time.Duration) {
	lease, _ := redlock.LeaseFrom(term)
	c.watch(term, id, leased{lease}, d)
}
