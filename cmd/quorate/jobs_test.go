package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock/redlocktest"
	"github.com/quorate/quorate/scheduler"
)

// looksAfter has a process run a job until the test ends.
func looksAfter(t *testing.T, fleet *redlocktest.Fleet, job, spec string, fn func(context.Context, scheduler.Run) error) {
	t.Helper()
	s, err := scheduler.New(serviceOf(t, fleet, "pod-1"), scheduler.WithIdentity("pod-1"),
		scheduler.WithLogger(slog.New(slog.DiscardHandler)), scheduler.WithDrainTimeout(0))
	require.NoError(t, err)
	require.NoError(t, s.Add(job, spec, fn))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			require.ErrorIs(t, err, scheduler.ErrDrainTimeout, "a run was going on")
		}
	})
	require.Eventually(t, func() bool { return at(t, fleet, "jobs", "history", job).code == 0 }, inTime, often, "the job is known")
}

const yearly = "0 0 1 1 *"

func TestAJobIsTriggeredAndItsHistoryTells(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	looksAfter(t, fleet, "report", yearly, func(context.Context, scheduler.Run) error { return errors.New("no paper") })

	got := at(t, fleet, "jobs", "trigger", "report")
	require.Zero(t, got.code, got.err)
	require.Equal(t, "report: triggered\n", got.out)
	require.Eventually(t, func() bool { return strings.Contains(at(t, fleet, "jobs", "history", "report").out, "no paper") }, inTime, often)

	got = at(t, fleet, "jobs", "history", "-n", "1", "-o", "json", "report")
	require.Zero(t, got.code, got.err)
	var r runView
	require.NoError(t, json.Unmarshal([]byte(got.out), &r))
	require.Equal(t, scheduler.Triggered, r.Kind)
	require.Equal(t, scheduler.Failed, r.Outcome)
	require.Equal(t, "pod-1", r.Replica)
	require.Equal(t, "no paper", r.Error)
	require.NotZero(t, r.Token)

	got = at(t, fleet, "jobs")
	require.Zero(t, got.code, got.err)
	require.Equal(t, "failed", field(t, got.out, "report", 2))
	require.Contains(t, at(t, fleet, "show", "job/report").out, "quorate jobs history report")
}

func TestAJobIsPausedByWhoCallsAndResumed(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	looksAfter(t, fleet, "report", yearly, func(context.Context, scheduler.Run) error { return nil })

	got := at(t, fleet, "--identity", "alice", "jobs", "pause", "report")
	require.Zero(t, got.code, got.err)
	require.Contains(t, at(t, fleet, "jobs").out, "by alice since ")
	var v jobView
	require.NoError(t, json.Unmarshal([]byte(at(t, fleet, "jobs", "-o", "json").out), &v))
	require.True(t, v.Paused)
	require.Equal(t, "alice", v.PausedBy)

	got = at(t, fleet, "jobs", "resume", "-o", "json", "report")
	require.Zero(t, got.code, got.err)
	require.JSONEq(t, `{"job":"report","done":"resumed"}`, got.out)
	require.Equal(t, "no", field(t, at(t, fleet, "jobs").out, "report", 1))
}

func TestABackfillRunsTheTicksOfTheTime(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 1)
	looksAfter(t, fleet, "report", yearly, func(context.Context, scheduler.Run) error { return nil })
	got := at(t, fleet, "jobs", "backfill", "report", "--from", "2024-06-01T00:00:00Z", "--to", "2026-06-01T00:00:00+02:00")
	require.Zero(t, got.code, got.err)
	require.Eventually(t, func() bool {
		history := at(t, fleet, "jobs", "history", "report").out
		return strings.Contains(history, "2025-01-01T00:00:00Z") && strings.Contains(history, "2026-01-01T00:00:00Z") && !strings.Contains(history, "2024-01")
	}, inTime, often)
}

func TestAJobThatRunsIsToldAsRunning(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	looksAfter(t, fleet, "long", yearly, func(ctx context.Context, _ scheduler.Run) error { <-ctx.Done(); return nil })
	require.Zero(t, at(t, fleet, "jobs", "trigger", "long").code)
	require.Eventually(t, func() bool { return strings.Contains(at(t, fleet, "jobs").out, "running") }, inTime, often)
	require.Equal(t, "1", field(t, at(t, fleet, "jobs").out, "long", 5))
}

func TestAJobThatNobodyKnowsIsAnErrorAndNothingIsWrittenOfIt(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	for _, args := range [][]string{
		{"history"}, {"pause"}, {"resume"}, {"trigger"},
		{"backfill", "--from", "2024-06-01T00:00:00Z", "--to", "2026-06-01T00:00:00Z"},
	} {
		got := at(t, fleet, append([]string{"jobs"}, append(args, "unheard-of")...)...)
		require.Equal(t, exitFailed, got.code, "%v: %s", args, got.err)
		require.Contains(t, got.err, "unknown job")
	}
	require.Empty(t, fleet.Keys(0))
}

func TestANameOfAJobDoesNothingToTheTerminal(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 1)
	looksAfter(t, fleet, hostile, yearly, func(context.Context, scheduler.Run) error { return errors.New(hostile) })
	got := at(t, fleet, "jobs", "trigger", hostile)
	require.Zero(t, got.code, got.err)
	requireHarmless(t, got.out)
	require.Eventually(t, func() bool { return strings.Contains(at(t, fleet, "jobs", "history", hostile).out, "failed") }, inTime, often)
	requireHarmless(t, at(t, fleet, "jobs", "history", hostile).out)
	requireHarmless(t, at(t, fleet, "jobs").out)
	require.Contains(t, at(t, fleet, "jobs", "-o", "json").out, `"a\u001b[2J`)
}

func TestOneRegisterThatCannotBeReadDoesNotHideTheOthers(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 1)
	looksAfter(t, fleet, "sound", yearly, func(context.Context, scheduler.Run) error { return nil })
	lease := hold(t, fleet, serviceOf(t, fleet, "pod-2"), "job/broken")
	require.NoError(t, lease.Save(t.Context(), []byte("no register")))
	got := at(t, fleet, "jobs")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, "unreadable register")
	require.Contains(t, got.out, "sound")
}

func TestTheLastRunIsTheOneThatStartedLast(t *testing.T) {
	t.Parallel()
	at := func(minute int) time.Time { return time.Date(2030, 1, 1, 0, minute, 0, 0, time.UTC) }
	v := jobViewOf("report", scheduler.Status{History: []scheduler.Record{
		{Outcome: scheduler.Ran, Started: at(1), Ticks: 1},
		{Outcome: scheduler.Failed, Started: at(3), Ticks: 1},
		{Outcome: scheduler.Ran, Started: at(2), Ticks: 1},
		{Outcome: scheduler.Missed, Ticks: 7},
	}})
	require.Equal(t, scheduler.Failed, v.LastRun.Outcome)
	require.Equal(t, 7, v.Missed)
	require.Zero(t, v.Running)
}
