package leader

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestByDefaultATermLastsADay(t *testing.T) {
	for _, ttl := range []time.Duration{10 * time.Millisecond, 700 * time.Millisecond, DefaultTTL, time.Minute} {
		s, err := newSettings([]Option{WithTTL(ttl)})
		require.NoError(t, err)
		lasts := ttl + time.Duration(*s.maxExtensions)*ttl/3
		assert.InDelta(t, DefaultTerm, lasts, float64(2*ttl))
	}
	s, err := newSettings(nil)
	require.NoError(t, err)
	assert.Equal(t, 32_400, *s.maxExtensions, "as documented")
}
