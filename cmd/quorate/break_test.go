package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

func TestBreakFreesANameWhoeverHoldsIt(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	lease := hold(t, fleet, serviceOf(t, fleet, "pod-1"), "sku:1")

	got := at(t, fleet, "break", "--yes", "sku:1")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, lease.Owner())
	select {
	case <-lease.Context().Done():
		require.ErrorIs(t, context.Cause(lease.Context()), redlock.ErrLeaseLost)
	case <-time.After(inTime):
		require.FailNow(t, "the holder has not heard of it")
	}
	next, err := serviceOf(t, fleet, "pod-2").TryAcquire(t.Context(), "sku:1")
	require.NoError(t, err)
	require.Greater(t, next.Token(), lease.Token())
	require.NoError(t, next.Release(t.Context()))
}

func TestBreakAsksForTheNameToBeTyped(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	lease := hold(t, fleet, serviceOf(t, fleet, "pod-1"), "sku:1")

	for _, typed := range []string{"", "y\n", "sku:2\n", "\n"} {
		got := answering(t, strings.NewReader(typed), fleet, "break", "sku:1")
		require.Equal(t, exitFailed, got.code, got.out+got.err)
		require.Contains(t, got.err, "only a gate")
		require.Contains(t, got.err, lease.Owner())
		require.NoError(t, lease.Extend(t.Context()), "still held")
	}
	got := answering(t, strings.NewReader("sku:1\n"), fleet, "break", "sku:1")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, "broken: sku:1")
}

func TestAQuestionCanBeInterrupted(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 1)
	lease := hold(t, fleet, serviceOf(t, fleet, "pod-1"), "sku:1")
	typed, keyboard := io.Pipe()
	defer keyboard.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var out, told stream
	c := &console{in: typed, out: &out, err: &told, interactive: func() bool { return true }}
	code := make(chan int, 1)
	go func() { code <- c.run(ctx, commandOn(fleet.URLs(), "break", "sku:1")) }()
	require.Eventually(t, func() bool { return strings.Contains(told.String(), "Type the name") }, inTime, often)
	cancel()
	select {
	case got := <-code:
		require.Equal(t, exitInterrupted, got)
	case <-time.After(inTime):
		require.FailNow(t, "it still waits for an answer")
	}
	require.NoError(t, lease.Extend(t.Context()))
}

func TestWithoutATerminalNothingIsBrokenUnasked(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 1)
	lease := hold(t, fleet, serviceOf(t, fleet, "pod-1"), "sku:1")
	got := at(t, fleet, "break", "sku:1")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.err, "--yes")
	require.NoError(t, lease.Extend(t.Context()))
}

func TestANameThatNobodyHoldsNeedsNoBreaking(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	got := at(t, fleet, "break", "--yes", "free")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, "nobody holds free")

	got = at(t, fleet, "break", "--yes", "-o", "json", "free")
	require.Zero(t, got.code)
	var b breakage
	require.NoError(t, json.Unmarshal([]byte(got.out), &b))
	require.Equal(t, breakage{Name: "free"}, b)
}

func TestBreakInJSONTellsWhoHeldIt(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	lease := hold(t, fleet, serviceOf(t, fleet, "pod-1"), hostile)
	got := at(t, fleet, "break", "--yes", "-o", "json", hostile)
	require.Zero(t, got.code, got.err)
	var b breakage
	require.NoError(t, json.Unmarshal([]byte(got.out), &b))
	require.True(t, b.Broken)
	require.Equal(t, hostile, b.Name)
	require.Equal(t, lease.Owner(), b.Was.Holder)
}

func TestBreakWorksWithAMinorityOfNodesDown(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	hold(t, fleet, serviceOf(t, fleet, "pod-1"), "sku:1")
	fleet.Stop(0)
	got := at(t, fleet, "break", "--yes", "sku:1")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, "broken: sku:1")
}

func TestTheQuestionDoesNothingToTheTerminal(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 1)
	hold(t, fleet, serviceOf(t, fleet, "pod-1"), hostile)
	got := answering(t, strings.NewReader(printable(hostile)+"\n"), fleet, "break", hostile)
	require.Zero(t, got.code, got.err)
	requireHarmless(t, got.out+got.err)
}

var errKeyboard = errors.New("no keyboard")

type noKeyboard struct{}

func (noKeyboard) Read([]byte) (int, error) { return 0, errKeyboard }

func TestAnAnswerThatCannotBeReadIsNone(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 1)
	hold(t, fleet, serviceOf(t, fleet, "pod-1"), "sku:1")
	got := answering(t, noKeyboard{}, fleet, "break", "sku:1")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.err, "no keyboard")
}
