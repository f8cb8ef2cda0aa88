package dashboard

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEachMomentIsOneThatABrowserHasADateFor(t *testing.T) {
	for _, ms := range []int64{math.MaxInt64, math.MinInt64, maxStamp + 1, -maxStamp - 1} {
		at := stamp(time.UnixMilli(ms))
		require.LessOrEqual(t, max(at, -at), int64(8.64e15), "%d", ms)
	}
	require.EqualValues(t, 1234, stamp(time.UnixMilli(1234)))
	require.Zero(t, stamp(time.Time{}))
}
