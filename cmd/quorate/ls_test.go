package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

func TestLsTellsWhoHoldsWhatAndByHowManyVotes(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	service := serviceOf(t, fleet, "pod-1")
	lease := hold(t, fleet, service, "sku:2")
	hold(t, fleet, service, "sku:1")

	got := at(t, fleet, "ls")
	require.Zero(t, got.code, got.err)
	require.Equal(t, []string{"NAME", "HOLDER", "TOKEN", "AGE", "TTL", "VOTES"}, strings.Fields(got.out)[:6])
	require.Equal(t, lease.Owner(), field(t, got.out, "sku:2", 1))
	require.Equal(t, lease.Token().String(), field(t, got.out, "sku:2", 2))
	require.Equal(t, "3/3", field(t, got.out, "sku:2", 5))
	require.Less(t, strings.Index(got.out, "sku:1"), strings.Index(got.out, "sku:2"), "in the order of names")
}

func TestLsTellsOfNamesThatNobodyHoldsOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	lease := hold(t, fleet, serviceOf(t, fleet, "pod-1"), "once")
	require.NoError(t, lease.Release(t.Context()))

	require.Eventually(t, func() bool { return !strings.Contains(at(t, fleet, "ls").out, "once") }, inTime, often)
	require.Contains(t, at(t, fleet, "ls").err, "--all")
	require.Equal(t, lease.Token().String(), field(t, at(t, fleet, "ls", "--all").out, "once", 1), "there is no holder")
}

func TestLsTakesAPrefixAndALimit(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 1)
	service := serviceOf(t, fleet, "pod-1")
	for _, name := range []string{"a/1", "a/2", "b/1"} {
		hold(t, fleet, service, name)
	}
	got := at(t, fleet, "ls", "a/")
	require.Contains(t, got.out, "a/2")
	require.NotContains(t, got.out, "b/1")

	got = at(t, fleet, "ls", "--limit", "2")
	require.Zero(t, got.code)
	require.Contains(t, got.out, "a/2")
	require.NotContains(t, got.out, "b/1")
	require.Contains(t, got.err, "more than 2")

	require.NotContains(t, at(t, fleet, "ls", "--limit", "3").err, "more than")
}

func TestLsInJSONIsAnObjectALineWithNamesAsTheyAre(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	service := serviceOf(t, fleet, "pod-1")
	lease := hold(t, fleet, service, hostile)
	hold(t, fleet, service, "plain")

	got := at(t, fleet, "ls", "--output", "json")
	require.Zero(t, got.code, got.err)
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	require.Len(t, lines, 2)
	var v map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &v))
	require.Equal(t, hostile, v["name"])
	require.Equal(t, lease.Owner(), v["holder"])
	require.InDelta(t, int64(lease.Token()), v["token"], 0.5)
	require.InDelta(t, 3, v["votes"], 0)
	at, err := time.Parse(time.RFC3339, v["acquired_about"].(string))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), at, inTime)
}

func TestLsTellsOfOneWhoHasTooFewVotesInParentheses(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	options, err := redis.ParseURL(fleet.URLs()[1])
	require.NoError(t, err)
	client := redis.NewClient(options)
	defer client.Close()
	require.NoError(t, client.Set(t.Context(), redlock.DefaultKeyPrefix+"half", "stranger", time.Minute).Err())

	got := at(t, fleet, "ls")
	require.Equal(t, "(stranger)", field(t, got.out, "half", 1))
	require.Contains(t, got.out, "1/3")
}

func TestWhatIsListedDoesNothingToTheTerminal(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 1)
	hold(t, fleet, serviceOf(t, fleet, "pod\x1b[2J\u202e"), hostile)
	for _, args := range [][]string{{"ls"}, {"ls", "--all"}, {"show", hostile}} {
		got := at(t, fleet, args...)
		require.Zero(t, got.code, got.err)
		require.Contains(t, got.out, `\x1b[2J`)
		requireHarmless(t, got.out+got.err)
	}
}

func TestWhatShowsWorksWithAMinorityOfNodesDownOrHung(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 5)
	hold(t, fleet, serviceOf(t, fleet, "pod-1"), "sku:1")
	fleet.Stop(0)
	fleet.Hang(3)
	hasty(t, fleet)
	for _, args := range [][]string{{"ls"}, {"show", "sku:1"}} {
		began := time.Now()
		got := quorately(t, func() outcome {
			began = time.Now()
			return at(t, fleet, args...)
		})
		require.Zero(t, got.code, got.err)
		require.Contains(t, got.out, "pod-1")
		require.Contains(t, got.out, "3/5")
		require.Less(t, time.Since(began), 10*time.Second, "a node that hangs is not waited for")
	}
	for _, command := range []string{"leaders", "jobs"} {
		require.Zero(t, quorately(t, func() outcome { return at(t, fleet, command) }).code)
	}
}

func TestWithoutAQuorumNothingIsToldAsIfItWereSo(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	hold(t, fleet, serviceOf(t, fleet, "pod-1"), "sku:1")
	fleet.Stop(0)
	fleet.Stop(1)
	hasty(t, fleet)
	for _, args := range [][]string{{"ls"}, {"ls", "-o", "json"}, {"leaders"}, {"jobs"}, {"jobs", "history", "report"}, {"jobs", "pause", "report"}, {"break", "--yes", "sku:1"}} {
		got := at(t, fleet, args...)
		require.Equal(t, exitNoQuorum, got.code, "%v: %s", args, got.out+got.err)
		require.Contains(t, got.err, "quorum")
		require.Empty(t, got.out, "%v", args)
	}
}

func TestCommandLinesThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 1)
	for _, args := range [][]string{
		{"ls", "a", "b"}, {"ls", "--limit", "-1"}, {"ls", "--nonsense"}, {"ls", "-o", "xml"},
		{"show"}, {"show", ""}, {"show", "a", "b"}, {"show", strings.Repeat("n", redlock.MaxNameLength+1)},
		{"break"}, {"break", "unattended"}, {"bench"}, {"bench", "--yes", "--for", "1ms"}, {"bench", "surplus", "--yes"},
		{"watch", "--every", "1ms"}, {"watch", "--begins", "a", "a"}, {"watch", "odd}name"},
		{"jobs", "nonsense"}, {"jobs", "history"}, {"jobs", "history", "-n", "-1", "a"}, {"jobs", "pause"}, {"leaders", "a", "b"},
		{"jobs", "backfill", "a"}, {"jobs", "backfill", "a", "--from", "yesterday", "--to", "today"},
		{"jobs", "backfill", "a", "--from", "2030-01-01T00:00:00Z", "--to", "2029-01-01T00:00:00Z"},
		{"jobs", "backfill", "a", "--from", "2020-01-01T00:00:00Z", "--to", "9999-01-01T00:00:00Z"},
		{"doctor", "surplus"}, {"doctor", "--timeout", "0s"}, {"doctor", "--timeout", "2h"},
		{"dashboard", "--listen", "0.0.0.0:0"}, {"dashboard", "--listen", ":0"}, {"dashboard", "--listen", "nonsense"},
		{"dashboard", "surplus"}, {"dashboard", "--actions-token-file", "/nonexistent/token"},
		{"demo", "surplus"}, {"demo", "--for", "-1s"}, {"demo", "--listen", "0.0.0.0:0"},
	} {
		got := at(t, fleet, args...)
		require.Equal(t, exitUsage, got.code, "%v: %s", args, got.out+got.err)
		require.NotEmpty(t, got.err, "%v", args)
		require.Equal(t, 1, strings.Count(got.err, "\n"), "one line for %v: %s", args, got.err)
	}
}

// closedPipe is a stream that nobody reads any more.
type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, fmt.Errorf("write: %w", syscall.EPIPE) }

func TestNothingIsSaidIntoAClosedPipe(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 1)
	hold(t, fleet, serviceOf(t, fleet, "pod-1"), "sku:1")
	for _, args := range [][]string{{"ls"}, {"ls", "-o", "json"}, {"show", "sku:1"}, {"leaders"}, {"jobs"}, {"watch"}, {"doctor"}, {"doctor", "-o", "json"}} {
		var err stream
		c := &console{in: strings.NewReader(""), out: closedPipe{}, err: &err, interactive: func() bool { return false }}
		require.Equal(t, exitPipe, c.run(t.Context(), commandOn(fleet.URLs(), args...)), "%v: %s", args, err.String())
		require.Empty(t, err.String(), "%v", args)
	}
}

func TestWhereScanIsRefusedTheRightThatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	refused := errors.New("NOPERM User app has no permissions to run the 'scan' command")
	require.ErrorContains(t, listFailed(refused), "+scan")
	require.ErrorIs(t, listFailed(refused), refused)
	other := errors.New("connection refused")
	require.Equal(t, other, listFailed(other))
}

func TestANodeThatHangsUpIsNoClosedPipe(t *testing.T) {
	t.Parallel()
	hungUp := fmt.Errorf("%w: node: %w", redlock.ErrNoQuorum, syscall.EPIPE)
	require.Equal(t, exitNoQuorum, exitCode(hungUp))
	require.Equal(t, exitPipe, exitCode(fmt.Errorf("write: %w", syscall.EPIPE)))
}
