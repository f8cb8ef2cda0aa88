package redlock

import (
	"context"
	"sync"

	"github.com/quorate/quorate/internal/quorum"
)

// A release is published on every node; who waits for the name wakes when a quorum of nodes has
// told him. A message may be lost, so waiting never relies on one: the backoff is the net.

// watches are the names whose releases this process listens for.
type watches struct {
	lanes     []*lane
	prefix    string
	listeners []*listener // none until a name is first waited for

	ctx  context.Context // of the listeners; ends with close
	stop context.CancelFunc

	mu     sync.Mutex
	byLock map[string]*watch
	closed bool
}

// A watch is the interest in the releases of one name.
type watch struct {
	all  *watches
	lock string
	// C has a value when a quorum of nodes published a release, or began to listen, since the
	// last receive.
	C chan struct{}

	subscribed map[int]bool
	heard      map[int]string // whose release each node published last
}

func newWatches(lanes []*lane, prefix string) *watches {
	ctx, stop := context.WithCancel(context.Background())
	return &watches{lanes: lanes, prefix: prefix, ctx: ctx, stop: stop, byLock: map[string]*watch{}}
}

// open begins to listen for a name, which must not be open.
func (ws *watches) open(lock string) *watch {
	w := &watch{all: ws, lock: lock, C: make(chan struct{}, 1), subscribed: map[int]bool{}, heard: map[int]string{}}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.closed {
		return w
	}
	if ws.listeners == nil {
		for _, l := range ws.lanes {
			listener := newListener(ws, l)
			ws.listeners = append(ws.listeners, listener)
			go listener.run()
		}
	}
	ws.byLock[lock] = w
	for _, l := range ws.listeners {
		l.want(lock, true)
	}
	return w
}

func (w *watch) close() {
	ws := w.all
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.byLock[w.lock] != w {
		return
	}
	delete(ws.byLock, w.lock)
	for _, l := range ws.listeners {
		l.want(w.lock, false)
	}
}

// listens reports whether the node counts this process among those that listen.
func (w *watch) listens(node int) bool {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	return w.subscribed[node]
}

// notify takes note that a node published a release, or confirmed that it will.
func (ws *watches) notify(node int, lock, owner string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := ws.byLock[lock]
	if w == nil {
		return
	}
	told := 0
	if owner == "" {
		if w.subscribed[node] {
			return // again, after a reconnection
		}
		w.subscribed[node] = true
		told = len(w.subscribed)
	} else {
		w.heard[node] = owner
		for _, last := range w.heard {
			if last == owner {
				told++
			}
		}
	}
	if told == quorum.Size(len(ws.lanes)) {
		select {
		case w.C <- struct{}{}:
		default:
		}
	}
}

// close ends the listeners and waits for them.
func (ws *watches) close() {
	ws.mu.Lock()
	ws.closed = true
	listeners := ws.listeners
	ws.mu.Unlock()
	ws.stop() // ends a dial
	for _, l := range listeners {
		l.wake() // ends a wait for messages
	}
	for _, l := range listeners {
		<-l.ended
	}
}
