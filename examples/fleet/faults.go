package main

import (
	"context"
	"time"
)

// waitFor is how many TTLs to wait for a sale: in a long run they are rare.
const waitFor = 10

// killLeader kills the leader by SIGKILL, in the middle of whatever it does, and starts another
// replica in its place.
func (s *stage) killLeader(ctx context.Context) error {
	c := s.leader(ctx)
	if c == nil {
		return nil
	}
	c.kill()
	s.say("replica %d, the leader, is killed", c.number)
	_, err := s.start()
	return err
}

// freezeLeader freezes the leader by SIGSTOP, in the middle of a sale, until its TTL is long
// over and another replica has sold the same product, and thaws it.
func (s *stage) freezeLeader(ctx context.Context) error {
	if !canFreeze {
		s.say("no replica is frozen: this system has no SIGSTOP")
		return nil
	}
	c := s.leader(ctx)
	if c == nil {
		return nil
	}
	isInside := s.listen(func(e event) bool { return e.Kind == inside && e.Replica == c.number })
	if err := c.hold(); err != nil {
		return err
	}
	var sale event
	select {
	case sale = <-isInside:
	case <-time.After(waitFor * s.cfg.TTL):
		s.say("replica %d is not frozen: it sells nothing", c.number)
		return nil
	case <-c.ended:
		return nil // is told of at the end
	case <-ctx.Done():
		return nil
	}
	overtaken := s.listen(func(e event) bool {
		return e.Kind == sold && e.Product == sale.Product && e.Token > sale.Token
	})
	if err := c.freeze(); err != nil {
		return err
	}
	defer func() { _ = c.thaw() }() // whatever happens; a second time does no harm
	s.say("replica %d, the leader, is frozen there", c.number)
	if !pause(ctx, s.cfg.TTL*3/2) {
		return nil
	}
	select {
	case e := <-overtaken:
		s.say("meanwhile replica %d sold unit %d of %s, token %d", e.Replica, e.Unit, e.Product, e.Token)
	case <-time.After(waitFor * s.cfg.TTL):
		s.say("nobody has sold %s meanwhile", sale.Product)
	case <-ctx.Done():
		return nil
	}
	s.say("replica %d is thawed", c.number)
	return c.thaw()
}

// restartNode restarts a node without its memory. Its votes do not count until every lease that
// it may have forgotten is over; the others do.
func (s *stage) restartNode(context.Context) error {
	if s.nodes == nil {
		s.say("no node is restarted: they are not embedded")
		return nil
	}
	s.nodes.RestartEmpty(1)
	s.say("node 2 is restarted empty; its votes do not count for a while")
	return nil
}
