package main

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	stormFor  = flag.Duration("for", 6*time.Second, "how long a storm with the gate goes on")
	stormSeed = flag.Uint64("seed", 1, "of the choice of faults")
)

func TestMain(m *testing.M) {
	if text := os.Getenv(clerkEnv); text != "" {
		if err := work(text); err != nil {
			fmt.Fprintln(os.Stderr, "storm clerk:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// onEachStore runs a test on each store, as many at once as there are cores.
func onEachStore(t *testing.T, test func(t *testing.T, s *stage, kind string)) {
	t.Helper()
	s := newStage(t)
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, s, kind)
		})
	}
}

// The gated run goes on until stale writes were refused, and the other one ends at the first thing that
// is wrong: both within a minute that they hardly need.
func TestWithTheGateNoWriteIsLateInAStormAndWithoutItSomeAre(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *stage, kind string) {
		gated := s.config(kind, true)
		gated.duration, gated.seed = *stormFor, *stormSeed
		r, err := run(t.Context(), gated)
		require.NoError(t, err)
		t.Log(r)
		require.Empty(t, r.Wrong, "run it again: go test ./storm -for %v -seed %d", *stormFor, *stormSeed)
		assert.Positive(t, r.Refused, "no write came too late: the run shows nothing")
		assert.Positive(t, r.Kills)
		assert.Equal(t, r.Sold, r.Gone)

		ungated := s.config(kind, false)
		ungated.first, ungated.seed = true, *stormSeed
		r, err = run(t.Context(), ungated)
		require.NoError(t, err)
		t.Log(r)
		assert.NotEmpty(t, r.Wrong, "the checks do not see a gate that is missing")
	})
}
