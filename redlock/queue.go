package redlock

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Inside a process, those who want one name queue first in, first out, and only the head asks
// the nodes: what a local mutex can do is no burden for the lock service. The head keeps its
// turn while it holds the lease, and may leave it to the next together with the turn: see handover.go.

// linger is how long a queue that other processes were waited for in is kept when nobody uses it: who
// wants a name that others want as well often wants it again, and then knows so already.
const linger = time.Second

// queues are the queues of all names that are in use in this process.
type queues struct {
	mu     sync.Mutex
	byLock map[string]*queue
}

// A queue is the line of one name.
type queue struct {
	lock    string // the name's lock key
	users   int    // in line, or at the head
	idle    *time.Timer
	waiting []*place // in line, in order of arrival
	taken   bool     // somebody is at the head

	wanted atomic.Bool // another process waited when the last lease was released

	// The head alone uses these.
	streak   int           // leases of this process without a pause
	passedOn time.Duration // when the last release was for the next in line, on the clock; 0: it was not
	inLine   bool          // and this process lined up with it
	reserved Token         // the highest token of the last range
	served   Token         // and of the last that was won
	watched  *Watch
}

// A place is somebody's in the line.
type place struct {
	settings *leaseSettings
	ready    chan struct{} // closed when the turn has come
	gift     *grant        // what came with it
}

func newQueues() *queues { return &queues{byLock: map[string]*queue{}} }

// A turn is the head's place in a queue.
type turn struct {
	all   *queues
	queue *queue
	over  bool
	// waited reports that somebody was at the head before, so that the next will hardly be long in coming.
	waited bool
}

// enter waits until the caller is at the head, and returns what the one before left there for him.
// Without wait it returns nil if that is not now.
func (qs *queues) enter(ctx context.Context, lock string, wait bool, s *leaseSettings) (*turn, *grant, error) {
	qs.mu.Lock()
	q := qs.byLock[lock]
	if q == nil {
		q = &queue{lock: lock}
		qs.byLock[lock] = q
	}
	t := &turn{all: qs, queue: q}
	if !q.taken {
		q.taken = true
		q.users++
		qs.mu.Unlock()
		return t, nil, nil
	}
	if !wait {
		qs.mu.Unlock()
		return nil, nil, nil
	}
	t.waited = true
	p := &place{settings: s, ready: make(chan struct{})}
	q.waiting = append(q.waiting, p)
	q.users++
	qs.mu.Unlock()

	select {
	case <-p.ready:
		return t, p.gift, nil
	case <-ctx.Done():
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if i := slices.Index(q.waiting, p); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		q.users--
		return nil, nil, context.Cause(ctx)
	}
	return t, p.gift, nil // the turn came at the same moment
}

// followed reports whether somebody is in line behind the head.
func (t *turn) followed() bool {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	return len(t.queue.waiting) > 0
}

// pass gives the turn to the next in line together with a grant, if fits says so of him.
func (t *turn) pass(g *grant, fits func(*leaseSettings) bool) bool {
	qs, q := t.all, t.queue
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if t.over || len(q.waiting) == 0 || !fits(q.waiting[0].settings) {
		return false
	}
	t.over = true
	q.users--
	q.waiting[0].gift = g
	q.next()
	return true
}

// next gives the turn to the first in line. It is guarded by mu.
func (q *queue) next() {
	close(q.waiting[0].ready)
	q.waiting[0] = nil
	q.waiting = q.waiting[1:]
}

// leave gives the turn to the next in line. Only the first call counts.
func (t *turn) leave() {
	qs, q := t.all, t.queue
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if t.over {
		return
	}
	t.over = true
	q.users--
	switch {
	case len(q.waiting) > 0:
		q.next()
		return
	case q.users > 0: // who has left the line, and does not know it yet
	case q.watched == nil && !q.wanted.Load():
		delete(qs.byLock, q.lock)
	default:
		qs.linger(q)
	}
	q.taken = false
}

// linger keeps a queue that nobody uses for a while. It is guarded by mu.
func (qs *queues) linger(q *queue) {
	if q.idle == nil {
		q.idle = time.AfterFunc(linger, func() { qs.drop(q) })
	} else {
		q.idle.Reset(linger)
	}
}

// note takes note of whether another process waited when the head released. The queue may have gone by
// then: this process had not waited for the name, and did not know that another does.
func (qs *queues) note(q *queue, wanted bool) {
	q.wanted.Store(wanted)
	if !wanted {
		return
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	switch now := qs.byLock[q.lock]; now {
	case q:
	case nil:
		qs.byLock[q.lock] = q
		qs.linger(q)
	default:
		now.wanted.Store(true)
	}
}

// drop forgets a queue that nobody has used for a while.
func (qs *queues) drop(q *queue) {
	qs.mu.Lock()
	var watched *Watch
	if q.users == 0 && qs.byLock[q.lock] == q {
		delete(qs.byLock, q.lock)
		watched, q.watched = q.watched, nil // note may put the queue back
	}
	qs.mu.Unlock()
	if watched != nil {
		watched.Close()
	}
}

// hear returns what takes note, when a release of the head has been answered, of whether
// another process waits. It must be called at the head.
func (t *turn) hear() func(*result) {
	q, own := t.queue, t.queue.watched
	return func(r *result) {
		others := 0
		for i := range r.answers {
			woken := r.answers[i].woken
			if own != nil && !r.answers[i].kept && own.listens(i) {
				woken-- // this process itself
			}
			others = max(others, woken)
		}
		t.all.note(q, others > 0)
	}
}
