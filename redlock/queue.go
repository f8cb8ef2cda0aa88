package redlock

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// Inside a process, those who want one name queue first in, first out, and only the head asks
// the nodes: what a local mutex can do is no burden for the lock service. The head keeps its
// turn while it holds the lease.

// queues are the queues of all names that are in use in this process.
type queues struct {
	mu     sync.Mutex
	byLock map[string]*queue
}

// A queue is the line of one name.
type queue struct {
	users   int             // in line, or at the head
	waiting []chan struct{} // in line, in order of arrival
	taken   bool            // somebody is at the head

	wanted  atomic.Bool // another process waited when the last lease was released
	streak  int         // leases of this process without a pause; used by the head alone
	watched *Watch      // used by the head alone
}

func newQueues() *queues { return &queues{byLock: map[string]*queue{}} }

// A turn is the head's place in a queue.
type turn struct {
	all   *queues
	lock  string
	queue *queue
	once  sync.Once
}

// enter waits until the caller is at the head. Without wait it returns nil if that is not now.
func (qs *queues) enter(ctx context.Context, lock string, wait bool) (*turn, error) {
	qs.mu.Lock()
	q := qs.byLock[lock]
	if q == nil {
		q = &queue{}
		qs.byLock[lock] = q
	}
	t := &turn{all: qs, lock: lock, queue: q}
	if !q.taken {
		q.taken = true
		q.users++
		qs.mu.Unlock()
		return t, nil
	}
	if !wait {
		qs.mu.Unlock()
		return nil, nil
	}
	ready := make(chan struct{})
	q.waiting = append(q.waiting, ready)
	q.users++
	qs.mu.Unlock()

	select {
	case <-ready:
		return t, nil
	case <-ctx.Done():
	}
	qs.mu.Lock()
	if i := slices.Index(q.waiting, ready); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		q.users--
		qs.mu.Unlock()
		return nil, context.Cause(ctx)
	}
	qs.mu.Unlock()
	t.leave() // the turn came at the same moment
	return nil, context.Cause(ctx)
}

// leave gives the turn to the next in line. Only the first call counts.
func (t *turn) leave() {
	t.once.Do(func() {
		qs, q := t.all, t.queue
		var unused *Watch
		qs.mu.Lock()
		q.users--
		switch {
		case len(q.waiting) > 0:
			next := q.waiting[0]
			q.waiting = q.waiting[1:]
			close(next)
		default:
			q.taken = false
			if q.users == 0 {
				delete(qs.byLock, t.lock)
				unused = q.watched
			}
		}
		qs.mu.Unlock()
		if unused != nil {
			unused.Close()
		}
	})
}

// hear returns what takes note, when a release of the head has been answered, of whether
// another process waits. It must be called at the head.
func (t *turn) hear() func(*result) {
	q, own := t.queue, t.queue.watched
	return func(r *result) {
		others := 0
		for i := range r.answers {
			woken := r.answers[i].woken
			if own != nil && own.listens(i) {
				woken-- // this process itself
			}
			others = max(others, woken)
		}
		q.wanted.Store(others > 0)
	}
}
