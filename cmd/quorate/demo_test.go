package main

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheDemoShowsAFleetAtWorkUntilItIsStopped(t *testing.T) {
	t.Parallel()
	b := inBackground(t, "quorate", "demo", "--listen", "127.0.0.1:0")
	code, _ := fetch(t, b.page(t)+"/", "")
	require.Equal(t, http.StatusOK, code)
	require.Eventually(t, func() bool { return strings.Contains(b.err.String(), " leads, term ") }, inTime, often)

	nodes := regexp.MustCompile(`QUORATE_NODES=(\S+)`).FindStringSubmatch(b.err.String())
	require.NotNil(t, nodes, "others can look at its nodes")
	got := on(t, []string{nodes[1]}, "leaders")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, "billing")
	require.Zero(t, b.end(t))
}

func TestTheDemoEndsByItselfWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	b := inBackground(t, "quorate", "demo", "--listen", "127.0.0.1:0", "--for", "300ms")
	require.Eventually(t, func() bool { return len(b.code) == 1 }, inTime, often)
	require.Zero(t, <-b.code)
	require.Contains(t, b.err.String(), "that was it")
}

func TestAKilledLeaderIsReplacedInTheDemo(t *testing.T) {
	t.Parallel()
	b := inBackground(t, "quorate", "demo", "--listen", "127.0.0.1:0")
	require.Eventually(t, func() bool {
		_, after, killed := strings.Cut(b.err.String(), "is killed")
		return killed && strings.Contains(after, " leads, term ")
	}, 2*inTime, often)
	require.Zero(t, b.end(t))
}
