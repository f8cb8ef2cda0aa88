package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/test/rig"
)

// A spell is one holding of the hot name: from when it was acquired to when its release began, by the
// clock that all processes share. Asked is when the worker began to want it.
type spell struct {
	Token    int64 `json:"t,omitempty"`
	Asked    int64 `json:"q"`
	Acquired int64 `json:"a"`
	Released int64 `json:"r"`

	by int // process
}

// contend is the life of a process that wants the hot name.
func (c *client) contend(ctx context.Context, commands <-chan command) error {
	contender, err := open(c.Library, c.Nodes, c.times)
	if err != nil {
		return err
	}
	defer contender.close()
	// Connections and scripts, on a name that nobody else wants.
	h, err := contender.lock(ctx, fmt.Sprintf("own-%d", rig.Stamp()))
	if err != nil {
		return err
	}
	if err := h.unlock(ctx); err != nil {
		return err
	}
	c.tell(event{Kind: readyEvent})
	cmd := <-commands

	// No deadline in ctx: see rueidisPeer.
	ctx, stop := context.WithCancel(ctx)
	defer time.AfterFunc(time.Duration(cmd.End-rig.Stamp()), stop).Stop()
	spells := make([][]spell, c.Workers)
	errs := make([]error, c.Workers)
	var all sync.WaitGroup
	for i := range spells {
		all.Go(func() { spells[i], errs[i] = c.hold(ctx, contender) })
	}
	all.Wait()
	for i := range spells {
		if errs[i] != nil {
			return errs[i]
		}
		// The bench reads lines of a limited length.
		for chunk := range slices.Chunk(spells[i], 1000) {
			c.tell(event{Kind: "held", Spells: chunk})
		}
	}
	c.tell(event{Kind: doneEvent})
	return nil
}

// hold holds the hot name again and again until ctx ends.
func (c *client) hold(ctx context.Context, contender contender) (spells []spell, err error) {
	for ctx.Err() == nil {
		s := spell{Asked: rig.Stamp()}
		h, err := contender.lock(ctx, "hot")
		switch {
		case err == nil:
		case ctx.Err() != nil: // it is over
			continue
		default:
			return nil, err
		}
		s.Token, s.Acquired = h.token, rig.Stamp()
		if c.Hold > 0 {
			pause(context.Background(), c.Hold)
		}
		s.Released = rig.Stamp()
		// Where that fails, the name is free when its time is over, which is in the figures.
		_ = h.unlock(context.WithoutCancel(ctx))
		spells = append(spells, s)
	}
	return spells, nil
}

// spells are those of all processes that began within the span, in their order. Two at one time, or a
// token that is not higher than the one before, would be no matter of speed: that is an error.
func (c *crew) spells(begin, end int64) ([]spell, error) {
	var all []spell
	for i, m := range c.members {
		for _, e := range m.told("held") {
			for _, s := range e.Spells {
				s.by = i
				all = append(all, s)
			}
		}
	}
	slices.SortFunc(all, func(a, b spell) int { return int(a.Acquired - b.Acquired) })
	for i := 1; i < len(all); i++ {
		before, s := all[i-1], all[i]
		if s.Acquired < before.Released {
			return nil, fmt.Errorf("processes %d and %d held the name at one time, for %v", before.by, s.by, time.Duration(before.Released-s.Acquired))
		}
		if s.Token != 0 && s.Token <= before.Token {
			return nil, fmt.Errorf("the token went from %d to %d", before.Token, s.Token)
		}
	}
	return slices.DeleteFunc(all, func(s spell) bool { return s.Acquired < begin || s.Acquired > end }), nil
}
