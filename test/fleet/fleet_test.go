package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	rounds = flag.Int("rounds", 2, "rounds of each fault in the test with an election")
	ticks  = flag.Int("ticks", 30, "ticks in the test with crontabs")
)

func TestMain(m *testing.M) {
	if text := os.Getenv(clientEnv); text != "" {
		if err := runClient(text); err != nil {
			fmt.Fprintln(os.Stderr, "fleet client:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestAnotherLeadsAfterEveryFaultAndNeverTwoAtOneTime(t *testing.T) {
	t.Parallel() // both wait most of the time
	c := leadersDefaults()
	c.rounds, c.log = *rounds, func(text string) { t.Log(text) }
	r, err := leaders(t.Context(), c)
	require.NoError(t, err)
	t.Log("\n" + r.String())
	require.Empty(t, r.violations)
	// How soon is for the report: here another process may have the machine, also for seconds. But
	// a resignation that is not heard of would take a TTL each time, and a crash no more than that.
	for _, fault := range faults {
		require.Len(t, r.takeovers[fault], c.rounds)
		most := 3 * c.ttl
		if fault == resigned {
			most = c.ttl / 2
		}
		require.Less(t, slices.Min(r.takeovers[fault]), most, "the leader %s", fault)
	}
}

func TestEveryTickIsRunOnceThoughReplicasAreKilledAndRestarted(t *testing.T) {
	t.Parallel()
	c := cronDefaults()
	c.ticks, c.log = *ticks, func(text string) { t.Log(text) }
	r, err := crons(t.Context(), c)
	require.NoError(t, err)
	t.Log("\n" + r.String())
	require.Empty(t, r.violations())
	for _, all := range r.tallies {
		for _, one := range all {
			require.Positive(t, one.runs)
			require.Positive(t, one.kills)
			require.Equal(t, replicas, one.restarts)
		}
	}
}

// A checker that is blind would pass everything.

func TestTwoTermsAtOneTimeAreFound(t *testing.T) {
	say := func(kind kind, p *process, at, token, until int64) told {
		return told{event{Kind: kind, At: at, Token: token, Until: until}, p}
	}
	one, two := &process{}, &process{}
	judge := func(entries ...told) int { return len(checkTerms(termsOf(entries))) }
	require.Zero(t, judge(say(led, one, 10, 1, 20), say(led, two, 20, 2, 30)))
	require.Equal(t, 1, judge(say(led, one, 10, 1, 20), say(led, two, 19, 2, 30)))
	require.Equal(t, 1, judge(say(led, one, 10, 1, 20), say(held, one, 15, 1, 25), say(led, two, 20, 2, 30)), "it was extended")
	require.Zero(t, judge(say(led, one, 10, 1, 20), say(ended, one, 15, 1, 0), say(led, two, 16, 2, 30)), "it had ended")
	require.Zero(t, judge(say(led, one, 10, 1, 20), say(led, two, 20, 2, 30), say(ended, one, 40, 1, 0)), "it was paused, and its term was over")
	require.Equal(t, 1, judge(say(led, one, 10, 2, 20), say(led, two, 20, 1, 30)), "the number went back")
}

func TestAWriteOfAnOlderTermIsFound(t *testing.T) {
	require.Empty(t, checkLedger([]int64{1, 1, 2, 5}))
	require.Len(t, checkLedger([]int64{1, 2, 1, 2}), 1)
}

func TestTicksThatAreLostOrDoubledAreFound(t *testing.T) {
	p := &process{config: clientConfig{Role: "quorate"}}
	w := &crew{cronConfig: cronConfig{ticks: 3}, contender: "quorate", first: 100, last: 102}
	run := func(kind kind, job string, tick int64) told { return told{event{Kind: kind, Job: job, Tick: tick}, p} }
	judge := func(job string, entries []told, order ...completion) (lost, doubled int) {
		one := w.tally(job, entries, order)
		require.Len(t, one.found, one.lost+one.doubled)
		return one.lost, one.doubled
	}
	begun := []told{run(started, atMostOnce, 99), run(started, atMostOnce, 100), run(started, atMostOnce, 101), run(started, atMostOnce, 102)}
	lost, doubled := judge(atMostOnce, begun)
	require.Zero(t, lost+doubled, "what was not completed was begun all the same")
	lost, _ = judge(atMostOnce, begun[:3])
	require.Equal(t, 1, lost)
	_, doubled = judge(atMostOnce, append(begun, begun[1]))
	require.Equal(t, 1, doubled)

	begun = []told{run(started, atLeastOnce, 100), run(started, atLeastOnce, 100), run(started, atLeastOnce, 101), run(started, atLeastOnce, 102)}
	done := []completion{{100, 7}, {101, 8}, {102, 9}}
	lost, doubled = judge(atLeastOnce, begun, done...)
	require.Zero(t, lost+doubled, "one was repeated, and completed once")
	lost, _ = judge(atLeastOnce, begun, done[:2]...)
	require.Equal(t, 1, lost)
	_, doubled = judge(atLeastOnce, append(begun, run(again, atLeastOnce, 101)), done...)
	require.Equal(t, 1, doubled)
	require.NotEmpty(t, w.tally(atLeastOnce, begun, []completion{{100, 8}, {101, 7}, {102, 9}}).found, "the gate let an older run in")
}

func TestTheLeastNumberOfMeasurementsHasItsQuantiles(t *testing.T) {
	require.Zero(t, quantile(nil, 0.99))
	all := []time.Duration{1, 2, 3, 4}
	require.Equal(t, time.Duration(1), quantile(all, 0))
	require.Equal(t, time.Duration(2), quantile(all, 0.5))
	require.Equal(t, time.Duration(4), quantile(all, 0.99))
}
