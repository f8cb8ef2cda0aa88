package dashboard_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock/redlocktest"
)

func TestTheFleetIsAskedOnlyWhileSomebodyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		f := redlocktest.Start(t, 3, redlocktest.WithObserver(func(_ int, args []string) {
			if name := strings.ToLower(args[0]); name == "info" || name == "scan" {
				asked.Add(1)
			}
		}))
		h := newBoard(t, newLocker(t, f, "a"))
		settle()
		require.Zero(t, asked.Load(), "nobody looks yet")

		p := look(t, h)
		settle()
		one := asked.Load()
		require.Positive(t, one)
		require.Equal(t, "ok", p.fleet()["state"])

		second, third := look(t, h), look(t, h)
		settle()
		three := asked.Load() - one
		require.LessOrEqual(t, three, one, "three pages cost no more than one")
		require.Equal(t, "ok", second.fleet()["state"])

		for _, p := range []*page{p, second, third} {
			p.leave()
		}
		synctest.Wait()
		before := asked.Load()
		settle()
		require.Equal(t, before, asked.Load(), "nobody looks any more")
	})
}

func TestPagesThatComeAndGoDoNotHaveTheFleetAskedMoreOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		f := redlocktest.Start(t, 3, redlocktest.WithObserver(func(_ int, args []string) {
			if len(args) > 1 && args[1] == "memory" { // a part of a look at a node, and of its first connection
				asked.Add(1)
			}
		}))
		h := newBoard(t, newLocker(t, f, "a"))
		settle()
		for range 100 {
			p := look(t, h)
			time.Sleep(interval / 20)
			p.leave()
		}
		require.Positive(t, asked.Load())
		require.LessOrEqual(t, asked.Load(), int64(3*(1+1+5)), "five intervals have passed")
	})
}

func TestAPageThatComesLateIsShownWhatIsKnown(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		h := newBoard(t, newLocker(t, f, "a"))
		first := look(t, h)
		settle()
		first.leave()
		p := look(t, h)
		synctest.Wait()
		require.Equal(t, "ok", p.fleet()["state"], "before anybody was asked again")
		require.Len(t, p.rows("nodes"), 3)
	})
}

func TestOnlyWhatChangedIsSent(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		locker := newLocker(t, f, "a")
		h := newBoard(t, locker)
		p := look(t, h)
		settle()
		before := p.count()
		settle()
		// In the bubble nothing takes time, so nodes and lists stay as they are; the fleet's row tells when
		// it was asked.
		require.LessOrEqual(t, p.count()-before, 2*6)
	})
}

func TestAReaderThatTakesNothingIsDropped(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		h := newBoard(t, newLocker(t, f, "a"))
		p := look(t, h)
		settle()
		p.mu.Lock()
		p.stuck = make(chan struct{})
		p.mu.Unlock()
		select {
		case <-p.ended:
		case <-time.After(30 * time.Second):
			t.Fatal("the stream goes on")
		}
	})
}

func TestClosingDoesNotWaitForAReaderThatTakesNothing(t *testing.T) {
	for _, taken := range []int{1, 2000} { // bytes: a part of the header, and of the first events
		inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
			h := newBoard(t, newLocker(t, f, "a"))
			server := &http.Server{Handler: h}
			line := &pipe{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
			client, conn := net.Pipe() // which holds nothing of what is written
			line.conns <- conn
			served := make(chan error, 1)
			go func() { served <- server.Serve(line) }()
			_, err := io.WriteString(client, "GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
			require.NoError(t, err)
			text := make([]byte, taken)
			_, err = io.ReadFull(client, text)
			require.NoError(t, err)
			synctest.Wait()
			begun := time.Now()
			require.NoError(t, h.Close())
			require.Zero(t, time.Since(begun))
			require.NoError(t, server.Close())
			require.ErrorIs(t, <-served, http.ErrServerClosed)
			require.NoError(t, client.Close())
		})
	}
}

// A pipe is a listener for the other end of one.
type pipe struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipe) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipe) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipe) Addr() net.Addr { return &net.TCPAddr{} }

func TestTheNumberOfStreamsIsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		h := newBoard(t, newLocker(t, f, "a"))
		var pages []*page
		for range 64 {
			pages = append(pages, look(t, h))
		}
		synctest.Wait()
		w := get(t, h, "/events")
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.NotEmpty(t, w.Header().Get("Retry-After"))
		pages[0].leave()
		p := look(t, h)
		settle()
		require.Equal(t, "ok", p.fleet()["state"])
	})
}

func TestAHeadIsNoStream(t *testing.T) {
	h := newBoard(t, newLocker(t, redlocktest.Start(t, 3), "a"))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodHead, "/events", nil))
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)
}
