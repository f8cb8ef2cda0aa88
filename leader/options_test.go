package leader

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

func TestTheLeaseLastsForATermAndWhatItsFunctionTakesToReturn(t *testing.T) {
	for _, ttl := range []time.Duration{10 * time.Millisecond, 700 * time.Millisecond, DefaultTTL, time.Minute} {
		s, err := newSettings([]Option{WithTTL(ttl)})
		require.NoError(t, err)
		lasts := ttl + time.Duration(s.extensions())*(ttl/3)
		assert.GreaterOrEqual(t, lasts, DefaultTerm+DefaultStopGrace)
		assert.LessOrEqual(t, lasts, DefaultTerm+DefaultStopGrace+2*ttl)
	}
	s, err := newSettings([]Option{WithTTL(redlock.MinTTL), WithMaxTerm(math.MaxInt64), WithStopGrace(math.MaxInt64)})
	require.NoError(t, err)
	assert.Equal(t, math.MaxInt32, s.extensions())
}

func TestWhateverACandidateMaySayOfItselfLeavesRoomForTheStateAndAnHeir(t *testing.T) {
	labels := map[string]string{}
	for i := range MaxLabels {
		labels[string(rune('a'+i))] = strings.Repeat("x", MaxLabelsSize/MaxLabels-1)
	}
	identity := strings.Repeat("i", MaxIdentityLength)
	s, err := newSettings([]Option{WithIdentity(identity), WithAddress(strings.Repeat("a", MaxAddressLength)), WithLabels(labels)})
	require.NoError(t, err)
	e := &Elector{identity: identity, settings: s}
	require.LessOrEqual(t, e.headSize(), maxRecordHead)
	require.NoError(t, (&Elector{}).validHeir(identity))

	// The worst for JSON.
	s, err = newSettings([]Option{WithIdentity(strings.Repeat("\x00", MaxIdentityLength))})
	require.NoError(t, err)
	e = &Elector{identity: *s.identity, settings: s}
	require.LessOrEqual(t, e.headSize(), maxRecordHead)
	require.Error(t, (&Elector{}).validHeir(*s.identity))
}
