package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var pageAddress = regexp.MustCompile(`the dashboard is at (http://\S+)`)

// page waits until a command serves the dashboard, and tells where.
func (b *background) page(t *testing.T) string {
	t.Helper()
	var address string
	require.Eventually(t, func() bool {
		found := pageAddress.FindStringSubmatch(b.err.String())
		if found != nil {
			address = found[1]
		}
		return found != nil
	}, inTime, often, "an address")
	return address
}

// fetch gets a page by its own connection, so that none is left.
func fetch(t *testing.T, address, host string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	if host != "" {
		request.Host = host
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: inTime}
	response, err := client.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

func TestTheDashboardIsServedToThisMachineUnderItsOwnNames(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	b := inBackground(t, commandOn(fleet.URLs(), "dashboard", "--listen", "127.0.0.1:0")...)
	address := b.page(t)
	code, body := fetch(t, address+"/", "")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, "<html")
	code, _ = fetch(t, address+"/", "evil.example")
	require.NotEqual(t, http.StatusOK, code, "a name that was made to resolve to this machine")
	require.Zero(t, b.end(t))
}

func TestTheDashboardIsNotServedToOthersUnlessAllowed(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 1)
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0"} {
		got := at(t, fleet, "dashboard", "--listen", address)
		require.Equal(t, exitUsage, got.code)
		require.Contains(t, got.err, "--allow-remote")
	}
	listener, err := listenHere("127.0.0.1:0", false)
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	got := at(t, fleet, "dashboard", "--listen", "127.0.0.1:99999")
	require.Equal(t, exitUsage, got.code, got.err)
}

func TestTheDashboardTakesATokenFromAFile(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 1)
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("\n"), 0o600))
	got := at(t, fleet, "dashboard", "--listen", "127.0.0.1:0", "--actions-token-file", file)
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.err, "is empty")

	require.NoError(t, os.WriteFile(file, []byte("short\n"), 0o600))
	got = at(t, fleet, "dashboard", "--listen", "127.0.0.1:0", "--actions-token-file", file)
	require.Equal(t, exitUsage, got.code, got.err)

	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("t", 32)+"\n"), 0o600))
	b := inBackground(t, commandOn(fleet.URLs(), "dashboard", "--listen", "127.0.0.1:0", "--actions-token-file", file)...)
	b.page(t)
	require.Zero(t, b.end(t))
	require.NotContains(t, b.err.String(), "tttt", "a token is no secret in a log")
}

func TestTheDashboardEndsThoughAPageIsOpen(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 1)
	b := inBackground(t, commandOn(fleet.URLs(), "dashboard", "--listen", "127.0.0.1:0")...)
	address := b.page(t)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/events", nil)
	require.NoError(t, err)
	response, err := client.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, http.StatusOK, response.StatusCode)
	began := time.Now()
	require.Zero(t, b.end(t))
	require.Less(t, time.Since(began), 10*time.Second)
}
