package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock/redlocktest"
)

// leads has a process lead an election until stop is called.
func leads(t *testing.T, fleet *redlocktest.Fleet, name, identity string, opts ...leader.Option) (term leader.Term, stop func()) {
	t.Helper()
	elector, err := leader.New(serviceOf(t, fleet, identity), name,
		append(opts, leader.WithIdentity(identity), leader.WithLogger(slog.New(slog.DiscardHandler)))...)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	began := make(chan leader.Term, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- elector.Run(ctx, func(ctx context.Context, term leader.Term) error {
			began <- term
			<-ctx.Done()
			return nil
		})
	}()
	stop = func() { cancel(); require.NoError(t, <-ended) }
	t.Cleanup(func() { cancel() })
	return <-began, stop
}

func TestLeadersTellsOfElectionsWithAndWithoutALeader(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	hold(t, fleet, serviceOf(t, fleet, "pod-0"), "no election")
	term, stop := leads(t, fleet, "billing", "pod-1", leader.WithAddress("10.0.0.9:80"), leader.WithLabels(map[string]string{"zone": "b", "app": "x"}))
	defer stop()
	_, stopVacant := leads(t, fleet, "vacant", "pod-2")
	stopVacant()

	var got outcome
	require.Eventually(t, func() bool {
		got = at(t, fleet, "leaders")
		return strings.Contains(got.out, "pod-1") && !strings.Contains(got.out, "pod-2")
	}, inTime, often)
	require.Zero(t, got.code, got.err)
	require.Equal(t, term.Number.String(), field(t, got.out, "billing", 2))
	require.Contains(t, got.out, "10.0.0.9:80")
	require.Contains(t, got.out, "app=x,zone=b")
	require.Equal(t, "-", field(t, got.out, "vacant", 1))
	require.NotContains(t, got.out, "no election")

	require.Contains(t, at(t, fleet, "show", "billing").out, "an election")

	w := watching(t, fleet, "billing")
	w.awaitOutput(t, "leads       billing  pod-1  term "+term.Number.String())
	require.Zero(t, w.end(t))
}

func TestLeadersInJSONAreAnObjectALine(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 1)
	term, stop := leads(t, fleet, hostile, "pod\x1b[2J\u202e")
	defer stop()
	got := at(t, fleet, "leaders", "-o", "json")
	require.Zero(t, got.code, got.err)
	var v leaderView
	require.NoError(t, json.Unmarshal([]byte(got.out), &v))
	require.Equal(t, hostile, v.Election)
	require.Equal(t, "pod\x1b[2J\u202e", v.Leader)
	require.Equal(t, term.Number, v.Term)
	require.NotNil(t, v.Since)
	requireHarmless(t, at(t, fleet, "leaders").out)
}
