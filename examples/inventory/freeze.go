package main

import (
	"context"
	"time"
)

// A freeze is what happened while a replica stood still.
type freeze struct {
	replica   int
	left      int // units, as it had read before
	from, to  time.Time
	meanwhile int  // units that the others have sold
	how       kind // its sale ended: landed, refused or failed
	text      string
}

// freeze freezes the replica that is first in the middle of a sale, by SIGSTOP, for longer than the TTL,
// and lets it go on. ctx ends with the sale.
func (s *sale) freeze(ctx context.Context, r *result) error {
	var e event
	select {
	case e = <-s.caught:
	case <-ctx.Done():
		return nil
	}
	c := s.children[e.Replica-1]
	if err := c.freeze(); err != nil {
		return err
	}
	defer func() { _ = c.thaw() }() // whatever happens; a second time does no harm
	f := &freeze{replica: e.Replica, left: e.Left, from: time.Now()}
	before := s.crowd.sold.Load()
	sleep(ctx, s.sizes.freeze)
	if s.cfg.Way != rowLock {
		// On a machine that is busy the others may need longer. With the row locked they would wait for ever.
		s.awaitMore(ctx, before)
	}
	f.meanwhile, f.to = int(s.crowd.sold.Load()-before), time.Now()
	if err := c.goOn(); err != nil {
		return err
	}
	if err := c.thaw(); err != nil {
		return err
	}
	// The sale may have ended by this one, before its event was read.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	select {
	case e := <-s.ended:
		f.how, f.text = e.Kind, e.Text
	case <-ctx.Done():
		f.how, f.text = failed, "nothing was heard of it"
	}
	r.freeze = f
	return nil
}

// awaitMore waits until more units than this are sold.
func (s *sale) awaitMore(ctx context.Context, than int64) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for s.crowd.sold.Load() <= than && sleep(ctx, 5*time.Millisecond) {
	}
}
