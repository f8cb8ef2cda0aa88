package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock/redlocktest"
)

// watching watches in the background, and often.
func watching(t *testing.T, fleet *redlocktest.Fleet, args ...string) *background {
	t.Helper()
	return inBackground(t, commandOn(fleet.URLs(), append([]string{"watch", "--every", "100ms"}, args...)...)...)
}

func (b *background) awaitOutput(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(b.out.String(), text) }, inTime, often, "%q", text)
}

func TestWatchTellsOfEachChange(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	hold(t, fleet, serviceOf(t, fleet, "pod-0"), "old")
	w := watching(t, fleet)
	w.awaitOutput(t, "held        old  by pod-0")
	lease := hold(t, fleet, serviceOf(t, fleet, "pod-1"), "sku:1")
	w.awaitOutput(t, "acquired    sku:1  by "+lease.Owner()+"  token "+lease.Token().String())
	require.NoError(t, lease.Release(t.Context()))
	w.awaitOutput(t, "released    sku:1  by "+lease.Owner())
	require.Zero(t, w.end(t), "that is how it ends")
	require.Equal(t, 3, strings.Count(w.out.String(), "\n"), "nothing is told twice:\n%s", w.out.String())
}

func TestWatchOfAGivenNameTellsThatItIsFree(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	hold(t, fleet, serviceOf(t, fleet, "pod-0"), "other")
	w := watching(t, fleet, "sku:1")
	w.awaitOutput(t, "free        sku:1")
	hold(t, fleet, serviceOf(t, fleet, "pod-1"), "sku:1")
	w.awaitOutput(t, "acquired    sku:1  by pod-1")
	require.Zero(t, w.end(t))
	require.NotContains(t, w.out.String(), "other")
}

func TestWatchOfABeginningLeavesOutOthers(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 1)
	service := serviceOf(t, fleet, "pod-0")
	hold(t, fleet, service, "b/1")
	hold(t, fleet, service, "a/1")
	w := watching(t, fleet, "--begins", "a/")
	w.awaitOutput(t, "a/1")
	require.Zero(t, w.end(t))
	require.NotContains(t, w.out.String(), "b/1")
}

func TestAHandOverBetweenTwoLooksIsToldAsOne(t *testing.T) {
	t.Parallel()
	var out stream
	w := &watcher{console: &console{out: &out}, looked: true}
	require.NoError(t, w.compare("sku:1", sight{holder: "pod-1/x", token: 7}, sight{holder: "pod-2/y", token: 9}))
	require.Contains(t, out.String(), "taken-over  sku:1  by pod-2/y from pod-1/x  token 9")
}

func TestWatchSaysOnceThatTooFewNodesAnswerAndGoesOn(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 3)
	hold(t, fleet, serviceOf(t, fleet, "pod-0"), "sku:1")
	w := watching(t, fleet, "-o", "json")
	w.awaitOutput(t, "sku:1")
	fleet.Partition(0, 1)
	require.Eventually(t, func() bool { return strings.Contains(w.err.String(), "watching goes on") }, inTime, often)
	fleet.Heal()
	require.Eventually(t, func() bool { return strings.Contains(w.err.String(), "answers again") }, inTime, often)
	require.Zero(t, w.end(t))
	require.Equal(t, 1, strings.Count(w.err.String(), "watching goes on"), w.err.String())
	require.NotContains(t, w.out.String(), eventReleased, "what cannot be seen is not over")
}

func TestWatchInJSONIsAnObjectALineWithNamesAsTheyAre(t *testing.T) {
	t.Parallel()
	fleet := embedded(t, 1)
	lease := hold(t, fleet, serviceOf(t, fleet, "pod-0"), hostile)
	w := watching(t, fleet, "-o", "json")
	w.awaitOutput(t, "\n")
	require.Zero(t, w.end(t))
	var c change
	require.NoError(t, json.Unmarshal([]byte(strings.TrimSpace(w.out.String())), &c))
	require.Equal(t, change{Time: c.Time, Event: eventHeld, Name: hostile, Holder: lease.Owner(), Token: lease.Token()}, c)
	require.WithinDuration(t, time.Now(), c.Time, inTime)

	w = watching(t, fleet)
	w.awaitOutput(t, "\n")
	require.Zero(t, w.end(t))
	requireHarmless(t, w.out.String())
}
