package redlock

import (
	"time"

	"github.com/quorate/quorate/internal/quorum"
)

// Handing over. Where others in the process wait for a name, or the one that asks has waited for it and
// no other process does, an acquisition reserves a range of tokens: it is accepted as one with the lowest of them would be, and leaves the highest as the
// fence, so that no token of the range, nor one below, can be granted to anybody else. Then a
// release need not ask the nodes: the next in line is given what the lease has, with the next
// token of the range. To the nodes it is one acquisition, with one owner, for as long as it is
// handed on; the last holder releases it.
//
// Nobody is to wait for long behind a process that hands a name on: the range is bounded, and so is
// the time, counted from when the nodes last granted the TTL. After that the name is released on
// the nodes, and other processes have their turn.

const (
	// maxRange is how many tokens an acquisition reserves, and so the leases that it serves.
	maxRange = 64
	// A lease is handed on while less than one part in handOverPart of its TTL has passed.
	handOverPart = 8
)

// span is how many tokens to reserve.
func (t *turn) span() Token {
	if t.followed() || t.waited && !t.queue.wanted.Load() {
		return maxRange
	}
	return 1
}

// handOver gives the turn to the next in line, and what the lease has with it, and reports whether
// it did. The lease has ended.
func (l *Lease) handOver() bool {
	if l.token == l.top { // the last of the range, or the only one: nobody waited
		return false
	}
	l.mu.Lock()
	// What is on its way to the nodes, or has failed there, is for the release to bring in order.
	// And a release that is to be published has to be one.
	plain := !l.published && !l.extending && l.failure == nil && l.unsaved == 0
	g := &grant{
		owner: l.owner, token: l.token + 1, top: l.top, number: l.number, grown: l.grown, held: true,
		end: l.end, state: l.state, skip: l.skip,
	}
	l.mu.Unlock()
	return plain && l.locker.pass(l.turn, g, l.settings.ttl)
}

// pass gives the turn, and a grant that a lease with this TTL had, to the next in line if that may be.
func (l *Locker) pass(t *turn, g *grant, ttl time.Duration) bool {
	if l.fleet.sameServer() != nil {
		return false
	}
	left := g.end - l.settings.clock.Elapsed()
	return t.pass(g, func(next *leaseSettings) bool {
		return next.ttl == ttl && left > quorum.Validity(ttl, ttl/handOverPart) && left >= next.minValidity
	})
}

// receive makes the grant that came with the turn the caller's, if it is still worth having.
func (c *campaign) receive(g *grant) bool {
	if g.end-c.locker.settings.clock.Elapsed() < c.settings.minValidity {
		c.locker.withdraw(c.keys, g)
		return false
	}
	c.turn.queue.streak++
	return true
}

// decline leaves what came with the turn to the next, or to nobody.
func (c *campaign) decline(g *grant) {
	if g != nil {
		if c.locker.pass(c.turn, g, c.settings.ttl) {
			return
		}
		c.locker.withdraw(c.keys, g)
	}
	c.turn.leave()
}
