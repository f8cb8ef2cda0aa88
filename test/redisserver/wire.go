package redisserver

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// wire is one direction of a link.
type wire struct {
	closed <-chan struct{} // the end of the link

	// Held for reading while bytes are handed to the kernel, so that cut, which takes it for
	// writing, has seen the last of them when it returns.
	sending sync.RWMutex

	mu      sync.Mutex
	passage chan struct{} // closed while bytes may pass
	delay   time.Duration
}

func newWire(closed <-chan struct{}) *wire {
	w := &wire{closed: closed, passage: make(chan struct{})}
	close(w.passage)
	return w
}

// cut returns once no byte passes any more. It asks for the link's connections because a
// write may hang in one of them, towards a frozen server: a deadline ends that write. It must
// ask after the passage is shut, so that no connection is missed which found it open.
func (w *wire) cut(connections func() []net.Conn) {
	w.mu.Lock()
	if w.isOpen() {
		w.passage = make(chan struct{})
	}
	w.mu.Unlock()
	for _, conn := range connections() {
		_ = conn.SetWriteDeadline(time.Now())
	}
	w.sending.Lock()
	defer w.sending.Unlock()
}

func (w *wire) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.isOpen() {
		close(w.passage)
	}
}

// isOpen is for holders of mu.
func (w *wire) isOpen() bool {
	select {
	case <-w.passage:
		return true
	default:
		return false
	}
}

func (w *wire) state() (passage <-chan struct{}, open bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.passage, w.isOpen()
}

func (w *wire) setDelay(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay = d
}

// due is when bytes that arrive now leave.
func (w *wire) due() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.delay)
}

// pass waits until bytes may pass. Where they may not at once, it tells whether that came
// before the end of the link and before giveUp, which may be nil.
func (w *wire) pass(giveUp <-chan struct{}) bool {
	passage, open := w.state()
	if open {
		return true
	}
	select {
	case <-passage:
	case <-giveUp:
		return false
	case <-w.closed:
		return false
	}
	select {
	case <-giveUp: // was first, or as good as
		return false
	default:
		return true
	}
}

// send writes the bytes as far as the wire lets them through, and says how many those were.
func (w *wire) send(to net.Conn, b []byte) (int, error) {
	w.sending.RLock()
	defer w.sending.RUnlock()
	if _, open := w.state(); !open {
		return 0, nil
	}
	n, err := to.Write(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		// A cut set it, of this direction or the other, now or earlier. It has done its work:
		// this was the connection's only writer, and it looks at the wire before it goes on.
		return n, to.SetWriteDeadline(time.Time{})
	}
	return n, err
}

// flow is what comes from one end of one connection, on its way over a wire. Reading and
// writing are two goroutines with a queue between them, so that a delay is one of time and
// not of throughput.
type flow struct {
	wire  *wire
	from  net.Conn
	queue chan chunk
	gone  chan struct{} // closed when the sender has hung up; what it sent is still on the way
	done  chan struct{} // closed when nobody writes any more
}

type chunk struct {
	bytes []byte
	due   time.Time
}

func newFlow(w *wire, from net.Conn) *flow {
	return &flow{
		wire:  w,
		from:  from,
		queue: make(chan chunk, 1024),
		gone:  make(chan struct{}),
		done:  make(chan struct{}),
	}
}

// stop ends read.
func (f *flow) stop() {
	close(f.done)
	_ = f.from.Close()
}

func (f *flow) read() {
	defer close(f.gone)
	defer close(f.queue)
	for {
		buf := make([]byte, 16<<10)
		n, err := f.from.Read(buf)
		if n > 0 {
			select {
			case f.queue <- chunk{buf[:n], f.wire.due()}:
			case <-f.done:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// write delivers to the other end, and hangs up there once the sender has.
func (f *flow) write(to net.Conn) {
	for c := range f.queue {
		if !f.deliver(to, c) {
			_ = to.Close()
			return
		}
	}
	// The end of a connection is news as well, and waits like bytes. Only this direction ends:
	// answers to the last request may still be due.
	_ = f.wait(f.wire.due()) && f.wire.pass(nil)
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

func (f *flow) deliver(to net.Conn, c chunk) bool {
	if !f.wait(c.due) {
		return false
	}
	for rest := c.bytes; len(rest) > 0; {
		if !f.wire.pass(nil) {
			return false
		}
		n, err := f.wire.send(to, rest)
		if err != nil {
			return false
		}
		rest = rest[n:]
	}
	return true
}

// wait waits until the time has come, and tells whether it did before the end of the link.
func (f *flow) wait(due time.Time) bool {
	d := time.Until(due)
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-f.wire.closed:
		return false
	}
}
