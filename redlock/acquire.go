package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/quorate/quorate/internal/quorum"
)

const (
	// maxProposals bounds how often one attempt proposes again because nodes had seen a higher
	// fence: once is common, twice takes a rival.
	maxProposals = 4
	// maxStreak is how many leases of a name one process takes in a row, while another waits,
	// before it lets the others go first for a moment.
	maxStreak = 16
	// giveWay is that moment: enough for a publication and a round trip.
	giveWay = 2 * time.Millisecond
)

// Acquire waits until it has the name, and returns the lease. It stops waiting when ctx ends,
// when the attempts are used up (WithMaxAttempts), or when the Locker is closed; then the error
// is an *AcquireError, and nothing is left on the nodes.
//
// ctx bounds the waiting only: the lease's own context carries its values, but ends with the
// lease. Automatic extension is off unless WithAutoExtend(true) says otherwise.
func (l *Locker) Acquire(ctx context.Context, name string, opts ...LeaseOption) (*Lease, error) {
	return l.acquire(ctx, context.WithoutCancel(ctx), name, true, extensionOff, opts)
}

// TryAcquire asks the nodes once. When the name is taken, also by this process, the error wraps
// ErrTaken.
func (l *Locker) TryAcquire(ctx context.Context, name string, opts ...LeaseOption) (*Lease, error) {
	return l.acquire(ctx, context.WithoutCancel(ctx), name, false, extensionOff, opts)
}

// Validate checks a name and the settings of a lease as Acquire would, and asks no node: for
// constructors that acquire later. The errors are ErrInvalidName, ErrInvalidOption, ErrTTLTooLong
// and ErrTTLTooShort.
func (l *Locker) Validate(name string, opts ...LeaseOption) error {
	_, _, err := l.validate(name, opts)
	return err
}

func (l *Locker) validate(name string, opts []LeaseOption) (keys, leaseSettings, error) {
	k, err := keysOf(l.settings.keyPrefix, name)
	if err != nil {
		return keys{}, leaseSettings{}, fmt.Errorf("redlock: %w", err)
	}
	ls, err := l.settings.lease.with(opts, l.settings.maxTTL)
	return k, ls, err
}

// acquire waits under ctx and gives the lease a context made from base.
func (l *Locker) acquire(ctx, base context.Context, name string, wait bool, auto extension, opts []LeaseOption) (lease *Lease, err error) {
	k, ls, err := l.validate(name, opts)
	if err != nil {
		return nil, err
	}
	if ls.autoExtend == extensionUnset {
		ls.autoExtend = auto
	}
	ctx, end, err := l.begin(ctx, "acquire", name)
	if err != nil {
		return nil, err
	}
	defer end()
	ctx, span := l.telemetry.start(ctx, "acquire", name)
	c := &campaign{locker: l, name: name, keys: k, settings: ls, wait: wait, began: l.settings.clock.Elapsed(),
		class: l.telemetry.classes.get(name)}
	defer func() {
		span.SetAttributes(attrAttempts.Int(c.attempts), attrVotes.Int(c.votes))
		if lease != nil {
			span.SetAttributes(attrToken.Int64(int64(lease.token)))
		}
		waited := l.settings.clock.Elapsed() - c.began
		l.telemetry.waited(ctx, c.class, waited, err)
		l.settings.observeWait(name, lease, waited, err)
		finish(span, err)
	}()
	won, err := c.run(ctx)
	if err != nil {
		return nil, err
	}
	return l.newLease(base, span.SpanContext(), c, won)
}

// A campaign is one call's way to a lease.
type campaign struct {
	locker   *Locker
	name     string
	keys     keys
	settings leaseSettings
	wait     bool
	began    time.Duration
	class    *class

	turn     *turn
	inLine   bool // this process, because of this call
	attempts int
	looks    int
	votes    int
	last     error // what the last attempt found
}

// A grant is an acquisition that a quorum has accepted.
type grant struct {
	owner string
	token Token
	top   Token         // the highest of the range that is reserved
	end   time.Duration // of the validity
	state version
	skip  nodeSet // nodes that were never sent anything
	// number is the fence number: top, or higher after healing (see extend.go).
	number Token
	grown  bool // a node may hold the lock with a fence below the number
	held   bool // a lease had it before
	line   *lining
}

// run waits for the turn in this process and then for the nodes.
func (c *campaign) run(ctx context.Context) (*grant, error) {
	l := c.locker
	if err := context.Cause(ctx); err != nil {
		return nil, c.giveUp(err)
	}
	need := quorum.Size(len(l.fleet.nodes))
	if err := l.fleet.ready(ctx); err != nil {
		if ctx.Err() != nil {
			c.last = &QuorumError{Op: "acquire", Name: c.name, Err: ErrNoQuorum, Quorum: need}
		}
		return nil, c.giveUp(err)
	}
	turn, gift, err := l.queues.enter(ctx, c.keys.lock, c.wait, &c.settings)
	if c.turn = turn; err != nil {
		return nil, c.giveUp(fmt.Errorf("%w; others in this process were ahead in the line", err))
	}
	if c.turn == nil {
		return nil, &QuorumError{Op: "acquire", Name: c.name, Err: ErrTaken, Holder: "another caller in this process", Quorum: need}
	}
	if err := context.Cause(ctx); err != nil {
		c.decline(gift)
		return nil, c.giveUp(err)
	}
	if gift != nil && c.receive(gift) {
		return gift, nil
	}
	won, err := c.campaign(ctx)
	if err != nil {
		c.leaveLine()
		c.turn.leave()
		return nil, err
	}
	return won, nil
}

// campaign asks the nodes until they grant the lease.
func (c *campaign) campaign(ctx context.Context) (*grant, error) {
	q := c.turn.queue
	net := newBackoff(10*time.Millisecond, c.settings.ttl*5/8)
	if err := c.giveWay(ctx); err != nil {
		return nil, c.giveUp(err)
	}
	look := false
	for {
		won, err := c.try(ctx, look)
		if err == nil {
			q.streak++
			q.served = won.top
			return won, nil
		}
		if ctx.Err() != nil {
			return nil, c.giveUp(context.Cause(ctx))
		}
		var lost *QuorumError
		if !errors.As(err, &lost) {
			return nil, err // no retry mends it
		}
		c.last = err
		if !c.wait {
			return nil, err
		}
		if c.settings.maxAttempts > 0 && c.attempts >= c.settings.maxAttempts {
			c.last = nil
			return nil, c.giveUp(err)
		}
		pause := c.delay(lost, net)
		woken, err := c.sleep(ctx, pause, c.listen())
		if err != nil {
			return nil, c.giveUp(err)
		}
		if woken {
			net.Reset() // the name was free a moment ago: who loses the race asks again soon
		}
		look = !woken && pause >= longPause && errors.Is(lost, ErrTaken)
		if err := c.locker.fleet.sameServer(); err != nil {
			return nil, err
		}
	}
}

// delay is how long to wait for a publication before asking again all the same: by jittered exponential
// backoff, but no longer than until the holder's TTL ends.
func (c *campaign) delay(lost *QuorumError, net *backoff.ExponentialBackOff) time.Duration {
	d := net.NextBackOff()
	if lost.Votes == 0 { // somebody holds it, and this process is in line behind him
		d = max(d, overtaken+jitter(overtaken))
	}
	if lost.Wait > 0 && lost.Wait < d {
		// A millisecond for Redis' precision, and some more so that waiters do not meet.
		d = lost.Wait + time.Millisecond + jitter(5*time.Millisecond)
	}
	return d
}

// listen has the head told of releases. It hears of nothing once the Locker is being closed.
func (c *campaign) listen() *Watch {
	q := c.turn.queue
	if q.watched == nil {
		q.watched = c.locker.watches.open(c.keys.lock, c.keys.lock+" "+c.locker.process)
	}
	if q.watched == nil {
		return &Watch{}
	}
	return q.watched
}

// sleep waits for a time or for a wake-up, and tells which. A release that is for another process
// begins a wait of its own.
func (c *campaign) sleep(ctx context.Context, d time.Duration, w *Watch) (woken bool, err error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return false, nil
		case <-w.C:
			return true, nil
		case <-w.passed:
			c.turn.queue.wanted.Store(true)
			timer.Reset(overtaken + jitter(overtaken))
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// jitter is a random time up to d.
func jitter(d time.Duration) time.Duration {
	return time.Duration(rand.Int64N(int64(d) + 1))
}

func (c *campaign) giveUp(err error) error {
	return &AcquireError{
		Name: c.name, Attempts: c.attempts, Err: err, Last: c.last,
		Waited: c.locker.settings.clock.Elapsed() - c.began,
	}
}

// attempt asks all nodes once, and once more where their fences were ahead of the proposal. A
// lost attempt is released on all nodes: "even the instances it believed it was not able to
// lock", and on nobody's context, so that a caller who is gone leaves nothing behind.
func (c *campaign) attempt(ctx context.Context) (*grant, error) {
	l := c.locker
	c.attempts++
	owner := newOwner(l.settings.identity)
	q := c.turn.queue
	floor := q.reserved
	var skip nodeSet
	for proposal := 1; ; proposal++ {
		// A proposal is made afresh in each round: with one that is older than its round, a
		// node that lost its fence could let a token regress.
		token, err := l.tokens.next(l.settings.clock.Now(), floor)
		if err != nil {
			return nil, fmt.Errorf("redlock: acquire %q: %w", c.name, err)
		}
		top := min(token+c.turn.span()-1, maxToken)
		q.reserved = top
		start := l.settings.clock.Elapsed()
		r, err := l.vote(ctx, acquireStep(c.keys, owner, token, top, &l.settings, c.settings.ttl, l.kept))
		c.votes = r.votes
		if proposal == 1 {
			skip = neverSent(&r)
		} else {
			skip = skip.and(neverSent(&r))
		}
		fence, behind := r.fence()
		if fence > 0 {
			floor = max(floor, fence, top)
			l.tokens.observe(l.settings.clock.Now(), fence)
		}
		g := &grant{owner: owner, token: token, top: top, number: top, grown: proposal > 1, skip: skip}
		if err == nil && r.won {
			return c.accept(ctx, g, start, &r)
		}
		// Who has not answered yet may accept as well: where a release is on its way, some nodes have it later.
		again := err == nil && proposal < maxProposals && behind > 0 && r.votes+behind+r.count(silent) >= quorum.Size(len(l.fleet.nodes))
		if again {
			continue
		}
		if err == nil {
			if exhausted := r.exhausted(); exhausted != nil {
				err = fmt.Errorf("redlock: acquire %q: %w", c.name, exhausted)
			}
		}
		failure := r.failure("acquire", c.name, l.fleet.nodes)
		if err == nil && c.wait && errors.Is(failure, ErrTaken) {
			g.line = l.lineUp(q, c.settings.ttl)
			c.inLine = true
		}
		l.withdraw(c.keys, g)
		if err != nil {
			return nil, err
		}
		return nil, failure
	}
}

// longPause is after how long a pause, in which nobody called, it is worth the while to look before asking.
// Where names are free for moments only, as between clients that poll, there is no time for it.
const longPause = 250 * time.Millisecond

// try makes an attempt. After a long pause it looks first whether that may succeed: a look costs the nodes a
// third, and leaves the fences alone.
func (c *campaign) try(ctx context.Context, look bool) (*grant, error) {
	if look {
		if err := c.look(ctx); err != nil {
			return nil, err
		}
	}
	return c.attempt(ctx)
}

// look returns an error if so many nodes have the name locked that an attempt would be in vain.
func (c *campaign) look(ctx context.Context) error {
	l := c.locker
	keep := time.Duration(0)
	if c.looks++; c.looks%4 == 1 {
		keep = lineTTL(c.settings.ttl)
	}
	r, err := l.vote(ctx, lookStep(c.keys, l.kept, keep))
	if err != nil {
		return err
	}
	if r.count(taken) <= len(r.answers)-quorum.Size(len(r.answers)) {
		return nil
	}
	c.attempts++
	return r.failure("acquire", c.name, l.fleet.nodes)
}

// accept makes a grant of a ballot that was won, if enough validity is left and the state is
// known to a quorum.
func (c *campaign) accept(ctx context.Context, g *grant, start time.Duration, r *result) (*grant, error) {
	l := c.locker
	end := start + quorum.Validity(c.settings.ttl, 0)
	err := ctx.Err()
	if err == nil {
		err = l.fleet.sameServer()
	}
	var agreed bool
	g.state, agreed = r.state()
	if err == nil && !agreed {
		// A value that only a minority has may be lost to the next holder: it counts only once
		// a quorum has it under this token.
		g.state = version{token: g.token, value: g.state.value}
		var saved result
		saved, err = l.vote(ctx, saveStep(c.keys, g.owner, g.state, "", &l.settings))
		if err == nil && !saved.won {
			err = saved.failure("acquire", c.name, l.fleet.nodes)
		}
	}
	if left := end - l.settings.clock.Elapsed(); err == nil && left < c.settings.minValidity {
		lost := r.failure("acquire", c.name, l.fleet.nodes)
		lost.Err, lost.Wait = ErrNoValidity, 0
		err = lost
	}
	if err != nil {
		l.withdraw(c.keys, g)
		return nil, err
	}
	g.end = end
	return g, nil
}

// vote puts a step to all nodes and waits until it is decided or ctx ends.
func (l *Locker) vote(ctx context.Context, s step) (result, error) {
	decided := make(chan struct{})
	b := l.fleet.ask(s, nil, func(*ballot) { close(decided) })
	select {
	case <-decided:
		return b.result(), nil
	case <-ctx.Done():
		return b.result(), context.Cause(ctx)
	}
}

// withdraw releases an acquisition that came to nothing, without waiting.
func (l *Locker) withdraw(k keys, g *grant) {
	e := ending{owner: g.owner, number: g.number, grown: g.grown, held: g.held, skip: g.skip, line: g.line}
	l.fleet.ask(releaseStep(k, e, &l.settings), nil, nil)
}
