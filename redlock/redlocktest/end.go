package redlocktest

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// end is one end of a link, and a net.Conn. Fields below the blank line are
// guarded by link.mu.
type end struct {
	link          *link
	peer          *end
	local, remote net.Addr

	arrived func() // called after each read that returned bytes; may be nil

	inbox           []segment
	closed          bool
	readBy, writeBy time.Time
}

var (
	_ net.Conn        = (*end)(nil)
	_ syscall.Conn    = (*end)(nil)
	_ syscall.RawConn = probe{}
)

func (e *end) Read(b []byte) (int, error) {
	n, err := e.read(b)
	if n > 0 && e.arrived != nil {
		e.arrived()
	}
	return n, err
}

func (e *end) read(b []byte) (int, error) {
	l := e.link
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		now := time.Now()
		switch {
		case e.closed:
			return 0, e.fail("read", net.ErrClosed)
		case l.reset:
			return 0, e.fail("read", os.NewSyscallError("read", syscall.ECONNRESET))
		case passed(e.readBy, now):
			return 0, e.fail("read", os.ErrDeadlineExceeded)
		case len(b) == 0:
			return 0, nil
		}
		if len(e.inbox) > 0 && !e.inbox[0].due.After(now) {
			if e.inbox[0].fin {
				return 0, io.EOF // stays in the inbox: every further read ends here too
			}
			return e.take(b, now), nil
		}
		e.wait(now)
	}
}

// take copies what has arrived.
func (e *end) take(b []byte, now time.Time) int {
	n := 0
	for n < len(b) && len(e.inbox) > 0 {
		s := &e.inbox[0]
		if s.fin || s.due.After(now) {
			break
		}
		k := copy(b[n:], s.data)
		n += k
		s.data = s.data[k:]
		if len(s.data) == 0 {
			e.inbox = e.inbox[1:]
		}
	}
	return n
}

// wait waits for a change of the link, or for the next moment at which time
// alone changes what a read finds.
func (e *end) wait(now time.Time) {
	next := e.readBy
	if len(e.inbox) > 0 && (next.IsZero() || e.inbox[0].due.Before(next)) {
		next = e.inbox[0].due
	}
	if !next.IsZero() {
		t := time.AfterFunc(next.Sub(now), func() {
			e.link.mu.Lock()
			defer e.link.mu.Unlock()
			e.link.cond.Broadcast()
		})
		defer t.Stop()
	}
	e.link.cond.Wait()
}

func (e *end) Write(b []byte) (int, error) {
	l := e.link
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case e.closed:
		return 0, e.fail("write", net.ErrClosed)
	case l.reset:
		return 0, e.fail("write", os.NewSyscallError("write", syscall.ECONNRESET))
	case passed(e.writeBy, time.Now()):
		return 0, e.fail("write", os.ErrDeadlineExceeded)
	case e.peer.closed && !l.cut: // behind a cut nobody can know
		return 0, e.fail("write", os.NewSyscallError("write", syscall.EPIPE))
	}
	if len(b) > 0 {
		l.send(e.peer, segment{data: append([]byte(nil), b...)})
	}
	return len(b), nil
}

// Close says goodbye to the other end; a second Close does nothing.
func (e *end) Close() error {
	l := e.link
	l.mu.Lock()
	if e.closed {
		l.mu.Unlock()
		return nil
	}
	e.closed = true
	e.inbox = nil
	l.send(e.peer, segment{fin: true})
	l.cond.Broadcast()
	gone := e.peer.closed
	l.mu.Unlock()
	if gone {
		l.gone()
	}
	return nil
}

// dropInFlight loses what has been sent and has not arrived.
func (e *end) dropInFlight(now time.Time) {
	for i, s := range e.inbox {
		if s.due.After(now) {
			e.inbox = e.inbox[:i:i]
			e.link.lost = true
			return
		}
	}
}

func (e *end) LocalAddr() net.Addr  { return e.local }
func (e *end) RemoteAddr() net.Addr { return e.remote }

func (e *end) SetDeadline(t time.Time) error      { return e.setDeadlines(&t, &t) }
func (e *end) SetReadDeadline(t time.Time) error  { return e.setDeadlines(&t, nil) }
func (e *end) SetWriteDeadline(t time.Time) error { return e.setDeadlines(nil, &t) }

func (e *end) setDeadlines(read, write *time.Time) error {
	e.link.mu.Lock()
	defer e.link.mu.Unlock()
	if e.closed {
		return e.fail("set", net.ErrClosed)
	}
	if read != nil {
		e.readBy = *read
	}
	if write != nil {
		e.writeBy = *write
	}
	e.link.cond.Broadcast()
	return nil
}

func passed(deadline, now time.Time) bool {
	return !deadline.IsZero() && !deadline.After(now)
}

func (e *end) fail(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: e.local, Addr: e.remote, Err: err}
}

// SyscallConn lets a client find out that a connection is dead before it uses
// it: go-redis peeks at the socket of each connection that it takes from its
// pool, and without this would meet every stale connection of a restarted node
// with a failed command.
func (e *end) SyscallConn() (syscall.RawConn, error) { return probe{e}, nil }

// probe stands for the socket that an in-memory connection does not have.
type probe struct{ end *end }

// Read reports whether the connection is dead. There is no descriptor to peek
// at, so f is not called.
func (p probe) Read(func(fd uintptr) bool) error {
	e := p.end
	e.link.mu.Lock()
	defer e.link.mu.Unlock()
	switch {
	case e.closed:
		return e.fail("raw-read", net.ErrClosed)
	case e.link.reset:
		return e.fail("raw-read", os.NewSyscallError("raw-read", syscall.ECONNRESET))
	case len(e.inbox) > 0 && e.inbox[0].fin && !e.inbox[0].due.After(time.Now()):
		return io.EOF
	}
	return nil
}

func (p probe) Control(func(fd uintptr)) error {
	return p.end.fail("raw-control", os.NewSyscallError("raw-control", syscall.ENOTSUP))
}

func (p probe) Write(func(fd uintptr) bool) error {
	return p.end.fail("raw-write", os.NewSyscallError("raw-write", syscall.ENOTSUP))
}
