package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	soakFor  = flag.Duration("for", 40*time.Second, "how long faults go on in the soak within the assumptions")
	soakSeed = flag.Uint64("seed", 1, "of the schedule of faults")
)

func TestMain(m *testing.M) {
	if text := os.Getenv(clientEnv); text != "" {
		if err := runClient(text); err != nil {
			fmt.Fprintln(os.Stderr, "soak client:", err)
			os.Exit(1)
		}
		return
	}
	if args := os.Getenv(harnessEnv); args != "" {
		if _, err := perform(context.Background(), []string{args}, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "soak:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// harnessEnv has the one argument of a harness that a test starts as a process of its own.
const harnessEnv = "QUORATE_SOAK_HARNESS"

// run carries a soak out and logs its report.
func soaked(t *testing.T, change func(*config)) *report {
	t.Helper()
	c := defaults()
	c.seed = *soakSeed
	c.log = func(text string) { t.Log(text) }
	c.discard = true // what matters is in the report, and CI keeps no files
	change(&c)
	r, err := soak(t.Context(), c)
	require.NoError(t, err)
	t.Log("\n" + r.String())
	return r
}

func TestNothingIsViolatedWithinTheAssumptions(t *testing.T) {
	r := soaked(t, func(c *config) { c.duration = *soakFor })
	require.Empty(t, r.Violations, "run it again: go run ./soak -for %v -seed %d", *soakFor, *soakSeed)
	for _, load := range allLoads {
		require.Positive(t, r.Operations[map[string]string{"locks": "lock", "guards": "guard", "leaders": "term", "ticks": "run"}[load]]["acquired"], load)
	}
	require.Positive(t, r.StateReads)
}

func TestTheGateHoldsBeyondTheAssumptions(t *testing.T) {
	var begun time.Time
	r := soaked(t, func(c *config) {
		c.profile, c.duration = beyond, max(*soakFor/4, time.Minute)
		c.until = func(h *harness) bool {
			if begun.IsZero() {
				begun = time.Now()
			}
			return time.Since(begun) >= *soakFor/4 && overlapped(h)
		}
	})
	require.Zero(t, r.Failing)
	require.NotEmpty(t, r.Violations, "no lease overlapped: then these faults are not beyond the assumptions, or the checker is blind")
	require.Positive(t, r.Ledger)
}

// overlapped tells whether claims overlap whose ends are known: of others, another process may have
// reported the end, and its report not been read yet.
func overlapped(h *harness) bool {
	k := &checker{}
	for name, claims := range h.history.snapshot() {
		k.overlaps(name, slices.DeleteFunc(claims, func(c *claim) bool { return c.ended == 0 && c.process.Killed() == 0 }))
	}
	return len(k.violations) > 0
}

// Without a deadline on the holder's side, or without the gate, the harness has to find what is
// wrong: a checker that is blind would pass everything.

func TestALockWithoutADeadlineIsCaught(t *testing.T) {
	r := soaked(t, func(c *config) {
		c.lib, c.loads, c.duration = "naive", []string{"locks"}, time.Minute
		c.until = overlapped
	})
	require.Positive(t, r.Counted[overlap])
	require.Positive(t, r.Counted[illegal])
}

func TestAGuardWithoutItsGateIsCaught(t *testing.T) {
	r := soaked(t, func(c *config) {
		c.ungated, c.loads, c.only, c.gap, c.duration = true, []string{"guards"}, []string{"client paused"}, 150*time.Millisecond, 2*time.Minute
		c.until = func(h *harness) bool {
			ledgers, err := h.ledgers(context.Background())
			k := &checker{}
			for resource, entries := range ledgers {
				k.ledger(resource, false, entries)
			}
			return err == nil && len(k.violations) > 0
		}
	})
	require.Positive(t, r.Counted[lostUpdate], "the leases are sound, and yet units were sold twice")
	require.Zero(t, r.Counted[overlap])
}
