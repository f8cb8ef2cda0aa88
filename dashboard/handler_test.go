package dashboard_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/dashboard"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

func TestSettingsThatMakeNoSenseAreRefused(t *testing.T) {
	locker := newLocker(t, redlocktest.Start(t, 3), "a")
	for why, opt := range map[string]dashboard.Option{
		"interval":   dashboard.WithInterval(time.Millisecond),
		"at least":   dashboard.WithActions("short"),
		"no header":  dashboard.WithActions("0123456789abcdef\n"),
		"an elector": dashboard.WithElectors(nil),
		"the logger": dashboard.WithLogger(nil),
	} {
		_, err := dashboard.New(locker, opt)
		require.ErrorIs(t, err, redlock.ErrInvalidOption)
		require.ErrorContains(t, err, why)
	}
	_, err := dashboard.New(nil)
	require.ErrorIs(t, err, redlock.ErrInvalidOption)
	var none *leader.Elector
	_, err = dashboard.New(locker, dashboard.WithElectors(none))
	require.ErrorIs(t, err, redlock.ErrInvalidOption)
}

func TestEveryAnswerForbidsForeignScriptsAndFrames(t *testing.T) {
	h := newBoard(t, newLocker(t, redlocktest.Start(t, 3), "a"))
	for _, path := range []string{"/", "/assets/app.js", "/assets/style.css", "/assets/icon.svg", "/names", "/nowhere", "/assets/../doc.go"} {
		header := get(t, h, path).Header()
		policy := header.Get("Content-Security-Policy")
		require.Contains(t, policy, "default-src 'none'", path)
		require.Contains(t, policy, "script-src 'self';", path)
		require.Contains(t, policy, "frame-ancestors 'none'", path)
		require.NotContains(t, policy, "unsafe", path)
		require.Equal(t, "nosniff", header.Get("X-Content-Type-Options"), path)
		require.Equal(t, "no-referrer", header.Get("Referrer-Policy"), path)
	}
	require.Equal(t, "no-store", get(t, h, "/names").Header().Get("Cache-Control"))
}

func TestThePageNeedsNothingFromElsewhere(t *testing.T) {
	h := newBoard(t, newLocker(t, redlocktest.Start(t, 3), "a"))
	for path, kind := range map[string]string{
		"/": "text/html", "/assets/style.css": "text/css", "/assets/app.js": "text/javascript", "/assets/jobs.js": "text/javascript",
		"/assets/icon.svg": "image/svg+xml",
	} {
		w := get(t, h, path)
		require.Equal(t, http.StatusOK, w.Code, path)
		require.Contains(t, w.Header().Get("Content-Type"), kind)
		require.NotRegexp(t, `(src|href)="(/|[a-z]+:)|@import|url\(|[^-]innerHTML|insertAdjacentHTML|document\.write|eval\(`, w.Body.String(), path)
	}
	w := get(t, h, "/assets/app.js")
	r := httptest.NewRequest(http.MethodGet, "/assets/app.js", nil)
	r.Header.Set("If-None-Match", w.Header().Get("ETag"))
	again := httptest.NewRecorder()
	h.ServeHTTP(again, r)
	require.Equal(t, http.StatusNotModified, again.Code)
}

func TestThePageIsFoundWithoutTheSlashUnderAnyPath(t *testing.T) {
	h := newBoard(t, newLocker(t, redlocktest.Start(t, 3), "a"))
	mux := http.NewServeMux()
	mux.Handle("/ops/quorate", http.StripPrefix("/ops/quorate", h))
	mux.Handle("/ops/quorate/", http.StripPrefix("/ops/quorate", h))
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, path := range []string{"/ops/quorate", "/ops/quorate?x=//example.com", "/ops/quorate/"} {
		response, err := server.Client().Get(server.URL + path)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusOK, response.StatusCode, path)
		require.Equal(t, "/ops/quorate/", response.Request.URL.Path)
	}
}

func TestARequestForAnotherHostIsRefusedWhereHostsAreNamed(t *testing.T) {
	h := newBoard(t, newLocker(t, redlocktest.Start(t, 3), "a"), dashboard.WithHosts("localhost", "::1"))
	for host, status := range map[string]int{
		"localhost:8090": http.StatusOK, "LocalHost": http.StatusOK, "[::1]:8090": http.StatusOK, "[::1]": http.StatusOK,
		"evil.example": http.StatusForbidden, "localhost.evil.example": http.StatusForbidden, "": http.StatusForbidden,
	} {
		r := httptest.NewRequest(http.MethodGet, "/names", nil)
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, status, w.Code, "%q", host)
	}
}

func TestAClosedHandlerAnswersThatItIs(t *testing.T) {
	h := newBoard(t, newLocker(t, redlocktest.Start(t, 3), "a"))
	require.NoError(t, h.Close())
	require.NoError(t, h.Close())
	for _, path := range []string{"/", "/events", "/names"} {
		require.Equal(t, http.StatusServiceUnavailable, get(t, h, path).Code)
	}
}
