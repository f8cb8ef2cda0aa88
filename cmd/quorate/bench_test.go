package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// measures runs a bench, for longer where a busy machine has not let a single round come to an end.
func measures(run func(length string) outcome) outcome {
	length := 500 * time.Millisecond
	got := run(length.String())
	for ; strings.Contains(got.err, "not a single round") && length < inTime; length *= 2 {
		got = run((2 * length).String())
	}
	return got
}

func TestBenchMeasuresFourPartsAndLeavesNothingHeld(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	got := measures(func(length string) outcome { return at(t, fleet, "bench", "--yes", "--for", length, "-o", "json") })
	require.Zero(t, got.code, got.err)
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	require.Len(t, lines, 4)
	for _, line := range lines {
		var m measurement
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		require.Positive(t, m.Rounds, line)
		require.Positive(t, m.P50, line)
		require.LessOrEqual(t, m.P50, m.P99, line)
		require.LessOrEqual(t, m.P99, m.Max, line)
		require.Zero(t, m.Failed, line)
	}
	require.NotContains(t, at(t, fleet, "ls").out, "quorate-bench/")
	for _, key := range fleet.Keys(0) {
		require.Contains(t, key, "quorate-bench/")
		require.LessOrEqual(t, fleet.TTL(0, key), 30*time.Second, "what is left expires soon: %s", key)
	}
}

func TestBenchAsksBeforeItLoadsNodes(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	got := answering(t, strings.NewReader("n\n"), fleet, "bench", "--for", "100ms")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.err, "slows down")
	require.Empty(t, got.out)
	got = measures(func(length string) outcome {
		return answering(t, strings.NewReader("y\n"), fleet, "bench", "--for", length)
	})
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, "64 want one name")
}

func TestBenchOnAFleetWithoutAQuorumMeasuresNothing(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	fleet.Stop(0)
	fleet.Stop(1)
	hasty(t, fleet)
	got := at(t, fleet, "bench", "--yes", "--for", "100ms")
	require.Equal(t, exitNoQuorum, got.code, got.err)
	require.Empty(t, got.out)
}

func TestBenchWorksWithANodeThatHangs(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	fleet.Hang(1)
	hasty(t, fleet)
	got := measures(func(length string) outcome {
		return quorately(t, func() outcome { return at(t, fleet, "bench", "--yes", "--for", length) })
	})
	require.Zero(t, got.code, got.out+got.err)
	require.Contains(t, got.err, "quorate doctor")
}

func TestRoundsThatFailAreCountedAndTheFirstErrorKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		flaky := errors.New("every other one")
		m, err := repeat(t.Context(), 100*time.Millisecond, 2, func(context.Context, int) error {
			if n.Add(1)%2 == 0 {
				return flaky
			}
			return nil
		})
		require.NoError(t, err)
		require.Positive(t, m.Rounds)
		require.Positive(t, m.Failed)
		require.Equal(t, "every other one", m.Error)

		_, err = repeat(t.Context(), 50*time.Millisecond, 2, func(context.Context, int) error { return flaky })
		require.ErrorIs(t, err, flaky)
	})
}
