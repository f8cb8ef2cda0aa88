package redlock

import (
	"context"
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
	step
	done func(answer) // called once

	settled bool // guarded by the lane
}

func (o *op) isRelease() bool { return o.script == releaseScript || o.script == shardReleaseScript }

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
	node    *node
	fleet   *fleet
	cluster *cluster // it has lanes of its own for its shards, and this one carries nothing; or nil

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

	desk desk // of the goroutine
}

func newLane(n *node, f *fleet) *lane {
	ctx, stop := context.WithCancel(context.Background())
	l := &lane{
		node: n, fleet: f,
		wake: make(chan struct{}, 1), known: make(chan struct{}),
		drained: make(chan struct{}), ended: make(chan struct{}),
		ctx: ctx, stop: stop,
	}
	if client, ok := n.client.(*redis.ClusterClient); ok {
		l.cluster = newCluster(l, client)
	}
	return l
}

// submit queues an op, or fails it at once.
func (l *lane) submit(o *op) {
	if l.cluster != nil {
		l.cluster.submit(o)
		return
	}
	l.mu.Lock()
	var err error
	switch {
	case l.closed:
		err = ErrClosed
	case l.suspect != nil && o.isRelease():
		l.owe(o)
		err = l.suspect
	case l.suspect != nil:
		err = l.suspicionLocked()
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
	if l.cluster != nil {
		l.cluster.run()
		return
	}
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
	if l.cluster != nil {
		return l.cluster.isUp()
	}
	return l.suspicion() == nil
}

// suspicion is why the node is left alone, or nil.
func (l *lane) suspicion() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.suspicionLocked()
}

func (l *lane) suspicionLocked() error {
	if l.suspect == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrNodeSuspect, l.suspect)
}

// post is where a channel is listened to.
func (l *lane) post(channel string) post {
	at := post{node: l.node.index}
	if l.cluster != nil {
		at.server = l.cluster.server(channel)
	}
	return at
}

// close lets what is queued go out, waits for that for at most the grace period, and ends the
// goroutine. A pipeline that is stuck in the client is waited for: up to the client's own read
// timeout, a few seconds by default.
func (l *lane) close(grace time.Duration) {
	if l.cluster != nil {
		l.cluster.close(grace)
		return
	}
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
	if l.cluster != nil {
		l.cluster.shut()
		return
	}
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
