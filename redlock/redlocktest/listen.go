package redlocktest

import (
	"io"
	"net"
	"sync"
)

// listen opens the port of a node to other processes.
func (f *Fleet) listen(n *node) error {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	n.listener = l
	n.addr = l.Addr().(*net.TCPAddr)
	f.serve.Add(1)
	go func() {
		defer f.serve.Done()
		for {
			conn, err := l.AcceptTCP()
			if err != nil {
				return // closed: nothing else fails for long on loopback
			}
			f.accept(n, conn)
		}
	}()
	return nil
}

// accept joins a socket to a link, so that every fault acts on it as on the
// connections in memory.
func (f *Fleet) accept(n *node, conn *net.TCPConn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || n.process == nil {
		// The port is kept while the node is stopped, lest another program
		// take it. A reset is as close to a refusal as that allows.
		_ = conn.SetLinger(0)
		_ = conn.Close()
		return
	}
	l := f.connect(nil, n, conn.RemoteAddr())
	f.conns[conn] = struct{}{}
	f.serve.Add(1)
	go func() {
		defer f.serve.Done()
		splice(l.client, conn)
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.conns, conn)
	}()
}

// splice copies both ways until either side ends, and then closes both.
func splice(e *end, conn *net.TCPConn) {
	var answers sync.WaitGroup
	answers.Go(func() {
		if _, err := io.Copy(conn, e); err != nil {
			_ = conn.SetLinger(0) // pass a reset on as a reset
		}
		_ = conn.Close()
	})
	_, _ = io.Copy(e, conn)
	_ = e.Close()
	answers.Wait()
}
