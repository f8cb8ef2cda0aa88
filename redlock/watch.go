package redlock

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/quorate/quorate/internal/quorum"
)

// A release is published on every node, and so is what a holder wants known; who listens wakes
// when a quorum of nodes has told him. A message may be lost, so nothing ever relies on one: who
// waits or watches asks again at intervals.

// A Watch tells when a name may have changed, without asking the nodes all the time. Make it with
// Locker.Watch.
type Watch struct {
	// C gets a value, and holds one at most, when a quorum of nodes has told of a publication
	// (Lease.Publish), or of the release of a lease that had published; and once when a quorum
	// has begun to listen, from when on nothing goes unnoticed but by a fault. It says that there
	// may be something new, not what: ask Locker.Inspect.
	//
	// A wake-up may be lost, and the end of a holder that has crashed wakes nobody: look at
	// intervals as well. C is never closed.
	C <-chan struct{}

	wake   chan struct{} // C
	passed chan struct{} // the name was released, and is for another process
	all    *watches
	on     []*channel
}

// Watch begins to watch a name. A process may watch a name many times, and wait for it as well; to
// the others it does not look like one that waits. Close it when it is no longer needed; it hears
// of nothing any more once the Locker is closed.
//
// The errors are ErrInvalidName and ErrClosed.
func (l *Locker) Watch(name string) (*Watch, error) {
	k, err := keysOf(l.settings.keyPrefix, name)
	if err != nil {
		return nil, fmt.Errorf("redlock: watch: %w", err)
	}
	l.fleet.run() // the listeners are woken by the lanes
	w := l.watches.open(k.news())
	if w == nil {
		return nil, l.errClosed("watch", name)
	}
	return w, nil
}

// watches are the channels that this process listens to.
type watches struct {
	lanes     []*lane
	prefix    string
	process   string             // that is called, where a release names the next in line
	listeners map[post]*listener // begun when something is first listened for

	ctx  context.Context // of the listeners; ends with close
	stop context.CancelFunc

	mu     sync.Mutex
	byName map[string]*channel
	closed bool
}

// A channel is one that somebody in this process watches: that of a name's releases, which are for
// those who wait for it, or that of its news.
type channel struct {
	name       string
	listeners  []*listener // one for each node
	watches    map[*Watch]struct{}
	subscribed map[int]bool
	heard      map[int]string // what each node published last
}

func newChannel(name string) *channel {
	return &channel{name: name, watches: map[*Watch]struct{}{}, subscribed: map[int]bool{}, heard: map[int]string{}}
}

// A post is where one listener listens: a node, and where that is a cluster, one of its shards. All
// servers of a cluster pass on what is published on one of them, but each counts only its own
// listeners; so who waits for a name listens at the server that its release is published on.
type post struct {
	node   int
	server string
}

func newWatches(lanes []*lane, prefix, process string) *watches {
	ctx, stop := context.WithCancel(context.Background())
	return &watches{lanes: lanes, prefix: prefix, process: process, ctx: ctx, stop: stop, byName: map[string]*channel{}, listeners: map[post]*listener{}}
}

// open begins to listen to channels. It returns nil once the watches are closed.
func (ws *watches) open(names ...string) *Watch {
	wake := make(chan struct{}, 1)
	w := &Watch{C: wake, wake: wake, passed: make(chan struct{}, 1), all: ws}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.closed {
		return nil
	}
	for _, name := range names {
		c := ws.byName[name]
		if c == nil {
			c = ws.subscribe(name)
		} else if len(c.subscribed) >= quorum.Size(len(ws.lanes)) {
			w.notify()
		}
		c.watches[w] = struct{}{}
		w.on = append(w.on, c)
	}
	return w
}

// subscribe has the listeners listen to one more channel. It is guarded by mu.
func (ws *watches) subscribe(name string) *channel {
	c := newChannel(name)
	ws.byName[name] = c
	for _, lane := range ws.lanes {
		at := lane.post(name)
		l := ws.listeners[at]
		if l == nil {
			l = newListener(ws, lane, name)
			ws.listeners[at] = l
			go l.run()
		}
		c.listeners = append(c.listeners, l)
	}
	for _, l := range c.listeners {
		l.want(name, true)
	}
	return c
}

// Close ends the watch. It may be called more than once.
func (w *Watch) Close() {
	ws := w.all
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, c := range w.on {
		if _, open := c.watches[w]; !open {
			return
		}
		delete(c.watches, w)
		if len(c.watches) > 0 {
			continue
		}
		delete(ws.byName, c.name)
		for _, l := range c.listeners {
			l.want(c.name, false)
		}
	}
}

func (w *Watch) notify() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *Watch) pass() {
	select {
	case w.passed <- struct{}{}:
	default:
	}
}

// listens reports whether the node counts this process among those that listen to the first channel.
func (w *Watch) listens(node int) bool {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	return w.on[0].subscribed[node]
}

// notify takes note that a node published something, or, with no text, confirmed that it will.
func (ws *watches) notify(node int, name, text string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	c := ws.byName[name]
	if c == nil {
		return
	}
	if text != "" {
		ws.told(c, node, text)
		return
	}
	if c.subscribed[node] {
		return // again, after a reconnection
	}
	c.subscribed[node] = true
	if len(c.subscribed) == quorum.Size(len(ws.lanes)) {
		for w := range c.watches {
			w.notify()
		}
	}
}

// close ends the listeners and waits for them.
func (ws *watches) close() {
	ws.mu.Lock()
	ws.closed = true
	listeners := slices.Collect(maps.Values(ws.listeners))
	ws.mu.Unlock()
	ws.stop() // ends a dial
	for _, l := range listeners {
		l.wake() // ends a wait for messages
	}
	for _, l := range listeners {
		<-l.ended
	}
}
