package redlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/redis/go-redis/v9"
)

const (
	maxQueue = 1 << 16 // requests that wait for one node
	maxBatch = 256     // requests in one pipeline

	// connectTimeout is what the first connection to a node may take, with name look-up, TLS
	// and authentication; the node timeout is for one round trip.
	connectTimeout = time.Second
)

// An op is one step for one node.
type op struct {
	script *script
	keys   []string
	args   []any
	done   func(answer) // called once

	settled bool // guarded by the lane
}

func (o *op) isRelease() bool { return o.script == releaseScript }

// A lane carries the steps for one node, in order, one pipeline at a time. What has queued
// while a pipeline was under way goes out as the next one: that is where the speed comes from,
// and it keeps the order of a name's steps.
//
// A node that does not answer within the node timeout is suspect: everything that waits for it
// fails at once, and so does what comes after, until it answers a probe. Releases are kept,
// because a key that is not deleted keeps others out for its whole TTL; also those whose TTL has
// long passed, because a node that hung may run the acquire only when it wakes.
//
//	         answers late or not at all
//	serving ────────────────────────────▶ suspect ──┐ probe, with backoff
//	   ▲                                     │  ▲───┘
//	   └─────────────────────────────────────┘
//	        answers: owed releases go first
//
// The lane owns one goroutine, which ends with close.
type lane struct {
	node  *node
	fleet *fleet

	mu       sync.Mutex
	queue    []*op
	owed     []*op // releases for a suspect node
	inFlight []*op
	suspect  error // why, or nil
	closed   bool
	drained  chan struct{} // closed when a closing lane has nothing left to send

	wake  chan struct{}
	known chan struct{} // closed when the node was first heard of, or given up on
	once  sync.Once     // closes known
	ctx   context.Context
	stop  context.CancelFunc
	ended chan struct{}
}

func newLane(n *node, f *fleet) *lane {
	ctx, stop := context.WithCancel(context.Background())
	return &lane{
		node: n, fleet: f,
		wake: make(chan struct{}, 1), known: make(chan struct{}),
		drained: make(chan struct{}), ended: make(chan struct{}),
		ctx: ctx, stop: stop,
	}
}

// submit queues an op, or fails it at once.
func (l *lane) submit(o *op) {
	l.mu.Lock()
	var err error
	switch {
	case l.closed:
		err = ErrClosed
	case l.suspect != nil && o.isRelease():
		l.owe(o)
		err = l.suspect
	case l.suspect != nil:
		err = fmt.Errorf("%w: %w", ErrNodeSuspect, l.suspect)
	case len(l.queue) >= maxQueue && !o.isRelease():
		err = ErrNodeBusy
	default:
		l.queue = append(l.queue, o)
	}
	o.settled = err != nil
	l.mu.Unlock()
	if err != nil {
		o.done(answer{verdict: failed, err: err})
		return
	}
	l.nudge()
}

// owe keeps a release for when the node is back. Guarded by mu.
func (l *lane) owe(o *op) {
	if len(l.owed) < maxQueue {
		l.owed = append(l.owed, o)
	}
}

func (l *lane) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *lane) run() {
	defer close(l.ended)
	l.probe(max(l.fleet.nodeTimeout, connectTimeout))
	retry := newBackoff(10*time.Millisecond, time.Second)
	for {
		l.mu.Lock()
		suspect, closed := l.suspect != nil, l.closed
		batch := l.take(suspect)
		l.mu.Unlock()
		switch {
		case closed && len(batch) == 0:
			close(l.drained)
			return
		case suspect:
			if !l.pause(retry.NextBackOff()) {
				continue
			}
			l.probe(l.fleet.nodeTimeout)
		case len(batch) > 0:
			retry.Reset()
			l.send(batch)
		default:
			select {
			case <-l.wake:
			case <-l.ctx.Done():
			}
		}
	}
}

// take moves the next batch into flight. Guarded by mu.
func (l *lane) take(suspect bool) []*op {
	if suspect || len(l.queue) == 0 {
		return nil
	}
	n := min(len(l.queue), maxBatch)
	l.inFlight = append(l.inFlight[:0:0], l.queue[:n]...)
	l.queue = l.queue[n:]
	return l.inFlight
}

func (l *lane) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// probe asks a node that was never asked, or did not answer, who it is.
func (l *lane) probe(timeout time.Duration) {
	ctx, answered := l.limit(timeout)
	err := lateness(l.node.probe(ctx))
	answered()
	if err != nil {
		l.distrust(err)
		return
	}
	l.trust()
}

// distrust makes the node suspect and fails what waits for it.
func (l *lane) distrust(err error) {
	l.mu.Lock()
	news := l.suspect == nil && !l.closed
	if l.suspect == nil {
		l.suspect = err
	}
	waiting := make([]*op, 0, len(l.inFlight)+len(l.queue))
	for _, o := range l.inFlight {
		if !o.settled {
			waiting = append(waiting, o) // whether a release arrived is seen when the batch ends
		}
	}
	for _, o := range l.queue {
		if o.isRelease() {
			l.owe(o)
		}
		if !o.settled { // one that was owed before has been answered
			waiting = append(waiting, o)
		}
	}
	l.queue = nil
	for _, o := range waiting {
		o.settled = true
	}
	l.mu.Unlock()
	l.once.Do(func() { close(l.known) })
	if news {
		l.fleet.logger.Warn("redlock: node does not answer; going on without it", "node", l.node.name, "error", err)
	}
	for _, o := range waiting {
		o.done(answer{verdict: failed, err: err})
	}
}

// trust ends suspicion. Owed releases go first.
func (l *lane) trust() {
	l.once.Do(func() { close(l.known) })
	l.mu.Lock()
	if l.suspect == nil && len(l.owed) == 0 {
		l.mu.Unlock()
		return
	}
	news := l.suspect != nil
	l.suspect = nil
	l.queue, l.owed = append(l.owed, l.queue...), nil
	l.mu.Unlock()
	if news {
		l.fleet.logger.Info("redlock: node answers again", "node", l.node.name)
	}
}

// send runs one batch and hands out its answers.
func (l *lane) send(batch []*op) {
	start := l.fleet.clock.Elapsed()
	replies := make([]reply, len(batch))
	ctx, answered := l.limit(l.fleet.nodeTimeout)
	missing := l.pipeline(ctx, batch, replies, evalSHA)
	answered()
	if missing >= 0 {
		// The node does not know a script. What came behind it is sent again as well, and so in
		// its order: every script may run twice.
		ctx, answered = l.limit(l.fleet.nodeTimeout)
		l.pipeline(ctx, batch[missing:], replies[missing:], eval)
		answered()
	}
	// Only now is it known which connection carried the answers, and so whether they count.
	ctx, answered = l.limit(l.fleet.nodeTimeout)
	err := lateness(l.node.check(ctx))
	answered()

	broken := err
	answers := make([]answer, len(batch))
	for i, o := range batch {
		switch {
		case replies[i].err != nil && !isReply(replies[i].err):
			broken = replies[i].err
			answers[i] = answer{verdict: failed, err: replies[i].err}
		case err != nil:
			answers[i] = answer{verdict: failed, err: err}
		default:
			answers[i] = l.judge(o, replies[i])
		}
	}
	l.settle(batch, answers)
	if broken != nil {
		l.distrust(broken)
		return
	}
	l.trust()
	l.fleet.telemetry.nodeAnswered(l.node, l.fleet.clock.Elapsed()-start)
}

type reply struct {
	value any
	err   error
}

// limit makes the context of one round trip. When its time is up the node is suspect. The
// context ends as well: that does not free a socket that is stuck in a read, unless the client
// has ContextTimeoutEnabled, but it keeps the client from retrying for many seconds what nobody
// waits for any more.
func (l *lane) limit(timeout time.Duration) (ctx context.Context, answered func()) {
	ctx, cancel := context.WithTimeoutCause(l.ctx, timeout, ErrNodeTimeout)
	stop := context.AfterFunc(ctx, func() { l.distrust(context.Cause(ctx)) })
	return ctx, func() {
		stop()
		cancel()
	}
}

// How a pipeline names its scripts.
const (
	evalSHA = false
	eval    = true
)

// pipeline runs ops in one round trip, by their scripts' names or by their text. It returns the
// first whose script the node does not know, or -1.
func (l *lane) pipeline(ctx context.Context, batch []*op, replies []reply, text bool) (missing int) {
	pipe := l.node.client.Pipeline()
	cmds := make([]*redis.Cmd, len(batch))
	for i, o := range batch {
		if text {
			cmds[i] = pipe.Eval(ctx, o.script.src, o.keys, o.args...)
		} else {
			cmds[i] = pipe.EvalSha(ctx, o.script.sha, o.keys, o.args...)
		}
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	missing = -1
	for i, cmd := range cmds {
		value, err := cmd.Result()
		replies[i] = reply{value, lateness(err)}
		if missing < 0 && redis.HasErrorPrefix(replies[i].err, "NOSCRIPT") {
			missing = i
		}
	}
	return missing
}

// judge turns a reply into an answer that may or may not count.
func (l *lane) judge(o *op, r reply) answer {
	// What is wrong with the node comes before what it says: a replica refuses every script.
	if err := l.node.fault(); err != nil {
		return answer{verdict: failed, err: err}
	}
	if r.err != nil {
		return answer{verdict: failed, err: r.err}
	}
	a, err := parseReply(o.script, r.value)
	if err != nil {
		return answer{verdict: failed, err: err}
	}
	a.quarantine = l.node.quarantine()
	return a
}

// settle hands out the answers of a batch, except to those that were told to stop waiting. A
// release that did not arrive is owed.
func (l *lane) settle(batch []*op, answers []answer) {
	l.mu.Lock()
	l.inFlight = nil
	open := make([]bool, len(batch))
	for i, o := range batch {
		open[i] = !o.settled
		o.settled = true
		if o.isRelease() && answers[i].verdict == failed && !isReply(answers[i].err) {
			l.owe(o)
		}
	}
	l.mu.Unlock()
	for i, o := range batch {
		if open[i] {
			o.done(answers[i])
		}
	}
}

// lateness names what the client says when the context of a round trip has ended. It is ours, so
// that nobody may take it for the end of his own.
func lateness(err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return ErrNodeTimeout
	case errors.Is(err, context.Canceled):
		return ErrClosed
	}
	return err
}

// isReply reports whether an error is the server's word on the command, rather than a broken
// connection or a server that cannot answer at all just now.
func isReply(err error) bool {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return false
	}
	for _, not := range []string{"LOADING", "BUSY", "MASTERDOWN"} {
		if redis.HasErrorPrefix(err, not) {
			return false
		}
	}
	return true
}

func (l *lane) isKnown() bool {
	select {
	case <-l.known:
		return true
	default:
		return false
	}
}

// isUp reports whether the node answered when it was last asked.
func (l *lane) isUp() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.suspect == nil
}

// close lets what is queued go out, waits for that for at most the grace period, and ends the
// goroutine. A pipeline that is stuck in the client is waited for: up to the client's own read
// timeout, 3 s by default.
func (l *lane) close(grace time.Duration) {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.nudge()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-l.drained:
	case <-timer.C:
	}
	l.stop()
	l.distrust(ErrClosed)
	<-l.ended
}

// shut closes a lane that was never started.
func (l *lane) shut() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.distrust(ErrClosed)
}

// newBackoff is jittered, exponential and never gives up.
func newBackoff(initial, most time.Duration) *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(initial),
		backoff.WithMaxInterval(most),
		backoff.WithMaxElapsedTime(0),
	)
}
