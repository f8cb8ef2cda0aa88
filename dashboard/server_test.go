package dashboard_test

import (
	"bufio"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock/redlocktest"
)

func TestAStreamOutlivesTheTimeoutsOfItsServer(t *testing.T) {
	h := newBoard(t, newLocker(t, redlocktest.Start(t, 3), "a"))
	const timeout = 300 * time.Millisecond
	server := httptest.NewUnstartedServer(h)
	server.Config.ReadTimeout, server.Config.WriteTimeout, server.Config.IdleTimeout = timeout, timeout, timeout
	server.Start()
	defer server.Close()
	defer func() { require.NoError(t, h.Close()) }() // or the server waits for the stream
	// On a busy machine a request may take longer than that to come in, and none is answered then.
	require.Eventually(t, func() bool {
		response, err := http.Get(server.URL + "/events")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		begun := time.Now()
		for lines := bufio.NewScanner(response.Body); time.Since(begun) < 3*timeout; {
			if !lines.Scan() {
				return false
			}
		}
		return true
	}, time.Minute, time.Millisecond, "no stream lives for so long")
}

// A plain is what some middleware makes of an http.ResponseWriter: it can neither flush, nor be unwrapped.
type plain struct{ w http.ResponseWriter }

func (p plain) Header() http.Header         { return p.w.Header() }
func (p plain) WriteHeader(status int)      { p.w.WriteHeader(status) }
func (p plain) Write(b []byte) (int, error) { return p.w.Write(b) }

func TestAMiddlewareThatHoldsTheStreamBackIsTold(t *testing.T) {
	h := newBoard(t, newLocker(t, redlocktest.Start(t, 3), "a"))
	w := get(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(plain{w}, r) }), "/events")
	require.Equal(t, http.StatusInternalServerError, w.Code)
	require.Contains(t, w.Body.String(), "Unwrap")
}

func TestAClientOfHTTP10IsSentTheStream(t *testing.T) {
	h := newBoard(t, newLocker(t, redlocktest.Start(t, 3), "a"))
	server := httptest.NewServer(h)
	defer server.Close()
	conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	_, err = conn.Write([]byte("GET /events HTTP/1.0\r\n\r\n"))
	require.NoError(t, err)
	lines := bufio.NewScanner(conn)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "event: nodes") {
	}
	require.Equal(t, "event: nodes", lines.Text())
	require.NoError(t, h.Close())
	for lines.Scan() {
	}
	require.NoError(t, lines.Err())
}
