package redlock

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/quorum"
)

// Among processes, too, those who want one name queue: each node keeps the line of those that asked in
// vain, and a release keeps the lock, for a moment, for the first of them, and calls that one alone.
// So one process asks, and the others need not: if all asked at once, they would cost the
// nodes much and each other the quorum. A process is in the line once, whoever in it is at the head of its
// own queue.
//
// The line is a hint and may be wrong: nodes may differ on it, and the first in it may have gone. Then the
// name is free again after a moment, and the others ask.

const (
	// keepFor is how long a node keeps a released lock for the next in line: a publication and a round trip.
	keepFor = 20 * time.Millisecond
	// overtaken is how long who was passed over leaves the name to the other, at least.
	overtaken = keepFor + 5*time.Millisecond
	// One release in plainReleases keeps the lock for nobody, so that those that are in no line, such as
	// other Redlock clients, are not kept out for ever.
	plainReleases = 32
)

// keptFor is what the lock key holds while it is kept for a process. No owner looks like it: what
// follows its last '/' is longer.
const keptFor = "next in line/"

const processLength = 16

// newProcess names a Locker in the lines.
func newProcess() string { return rand.Text()[:processLength] }

// isKept reports whether a lock key holds no owner but is kept for the next in line.
func isKept(holder string) bool {
	return len(holder) == len(keptFor)+processLength && strings.HasPrefix(holder, keptFor)
}

// A lining is what becomes of this process' place in the line of a name.
type lining struct {
	process string
	place   string // "": it leaves the line
	ttl     time.Duration
}

// lineTTL is how long a node keeps the line of a name after somebody has lined up, or after one look in four
// that somebody has taken: they are less than a TTL apart.
func lineTTL(ttl time.Duration) time.Duration { return 4 * ttl }

// lineUp has this process wait for the name. Its place is the last token that it had: whoever was served
// least lately is first. One that was not served lately comes before all that were.
func (l *Locker) lineUp(q *queue, ttl time.Duration) *lining {
	return &lining{process: l.process, place: fmt.Sprintf("%016d", q.served), ttl: lineTTL(ttl)}
}

// passOn says what becomes of the line when a lease is released: where others wait, the name is for the
// first of them, and this process goes to the end if somebody in it still waits.
func (t *turn) passOn(l *Locker, ttl time.Duration) *lining {
	q := t.queue
	if !q.wanted.Load() {
		return nil
	}
	if l.passes.Add(1)%plainReleases == 0 {
		q.streak = maxStreak // who is next in this process gives way
		return nil
	}
	q.passedOn, q.inLine = l.settings.clock.Elapsed(), t.followed()
	if !q.inLine {
		return &lining{process: l.process, ttl: lineTTL(ttl)}
	}
	return l.lineUp(q, ttl)
}

// giveWay lets other processes go first that wait for the name, after this one has had it.
func (c *campaign) giveWay(ctx context.Context) error {
	l, q := c.locker, c.turn.queue
	var err error
	switch {
	case q.passedOn > 0 && l.settings.clock.Elapsed() < q.passedOn+keepFor && c.wait:
		// The name is kept for another, or he has it: to ask would be in vain.
		w := c.listen()
		if !q.inLine {
			c.move(l.lineUp(q, c.settings.ttl))
		}
		c.inLine = true
		_, err = c.sleep(ctx, overtaken+jitter(overtaken), w)
	case q.streak >= maxStreak && q.wanted.Load():
		_, err = c.sleep(ctx, giveWay+jitter(giveWay), &Watch{})
	default:
		return nil
	}
	q.passedOn, q.streak = 0, 0
	return err
}

// leaveLine gives up the place of this process where nobody else in it waits: it would be called in vain.
func (c *campaign) leaveLine() {
	if c.inLine && !c.turn.followed() {
		c.move(&lining{process: c.locker.process, ttl: lineTTL(c.settings.ttl)})
	}
}

// move changes the place of this process in the line, and nothing else: by a release of what nobody has.
func (c *campaign) move(to *lining) {
	l := c.locker
	l.withdraw(c.keys, &grant{owner: newOwner(l.settings.identity), number: c.turn.queue.reserved, line: to})
}

// cutProcess takes the process that is next in line off what a release has published.
func cutProcess(text string) (release, process string) {
	if i := strings.LastIndexByte(text, ' '); i >= 0 && len(text)-i-1 == processLength {
		return text[:i], text[i+1:]
	}
	return text, ""
}

// told takes note that a node has published a release, or news, and wakes those whom it concerns when a
// quorum has: whoever is called, and whoever watches where nobody is. Where the nodes do not agree on who
// is next, each that one of them calls may try. The second in line goes on waiting.
func (ws *watches) told(c *channel, node int, text string) {
	release, _ := cutProcess(text)
	c.heard[node] = text
	for w := range c.watches {
		nodes, us, other := w.heard(release)
		switch {
		case nodes != quorum.Size(len(ws.lanes)):
		case other && !us:
			w.pass()
		default:
			w.notify()
		}
	}
}

// heard tells how many nodes have published a release on the watch's channels, if one of them calls this
// process, and if one calls another.
func (w *Watch) heard(release string) (nodes int, us, other bool) {
	seen := map[int]bool{}
	for _, c := range w.on {
		for node, text := range c.heard {
			if r, process := cutProcess(text); r == release {
				seen[node] = true
				us = us || process == w.all.process
				other = other || process != w.all.process && process != ""
			}
		}
	}
	return len(seen), us, other
}
