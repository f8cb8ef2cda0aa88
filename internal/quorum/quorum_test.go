package quorum

import (
	"math/bits"
	"testing"
	"testing/quick"
	"time"

	"github.com/stretchr/testify/require"
)

// oracle decides by trying every way in which the nodes that are silent could still vote.
func oracle(n, yes, no int) Outcome {
	silent := n - yes - no
	everWon, everLost := false, false
	for rest := range 1 << silent {
		if total := yes + bits.OnesCount(uint(rest)); total > n-total {
			everWon = true
		} else {
			everLost = true
		}
	}
	switch {
	case everWon && everLost:
		return Pending
	case everWon:
		return Won
	}
	return Lost
}

func TestDecideAgreesWithTryingEveryContinuation(t *testing.T) {
	for n := 1; n <= 9; n++ {
		for yes := 0; yes <= n; yes++ {
			for no := 0; yes+no <= n; no++ {
				require.Equal(t, oracle(n, yes, no), Decide(n, yes, no), "n=%d yes=%d no=%d", n, yes, no)
			}
		}
	}
}

func TestTwoQuorumsAlwaysShareANode(t *testing.T) {
	for n := 1; n <= 9; n++ {
		for a := range 1 << n {
			if bits.OnesCount(uint(a)) != Size(n) {
				continue
			}
			for b := range 1 << n {
				if bits.OnesCount(uint(b)) == Size(n) {
					require.NotZero(t, a&b, "n=%d: %b and %b", n, a, b)
				}
			}
		}
	}
}

func TestValidityNeverOutlivesANodeWhoseClockRunsOnePercentFast(t *testing.T) {
	check := func(ttlMillis uint16, elapsedMillis uint16) bool {
		ttl := time.Duration(ttlMillis)*time.Millisecond + 10*time.Millisecond
		elapsed := time.Duration(elapsedMillis) * time.Millisecond
		// The node set its key when the round began, at the earliest, and runs 1 % fast.
		nodeLife := time.Duration(float64(ttl)/1.01) - elapsed
		validity := Validity(ttl, elapsed)
		return validity >= 0 && (validity == 0 || validity <= nodeLife)
	}
	require.NoError(t, quick.Check(check, &quick.Config{MaxCount: 20000}))
}

func TestDriftIsOnePercentPlusTwoMilliseconds(t *testing.T) {
	require.Equal(t, 82*time.Millisecond, Drift(8*time.Second))
	require.Equal(t, 8*time.Second-82*time.Millisecond-time.Second, Validity(8*time.Second, time.Second))
	require.Zero(t, Validity(time.Second, 2*time.Second))
}
