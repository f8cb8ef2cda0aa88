package redlock

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProposalsFollowTheWallClockAndNeverRepeat(t *testing.T) {
	var tok tokens
	wall := time.UnixMicro(1_000_000_000)
	first, err := tok.next(wall, 0)
	require.NoError(t, err)
	require.Equal(t, Token(1_000_000_000), first)
	second, _ := tok.next(wall, 0)
	require.Equal(t, first+1, second)
	back, _ := tok.next(wall.Add(-time.Hour), 0)
	require.Equal(t, second+1, back, "a clock that was set back")
	later, _ := tok.next(wall.Add(time.Second), 0)
	require.Equal(t, Token(1_001_000_000), later)
}

func TestAProposalIsAboveTheFenceThatWasSeen(t *testing.T) {
	var tok tokens
	wall := time.UnixMicro(1_000_000_000)
	p, err := tok.next(wall, 2_000_000_000)
	require.NoError(t, err)
	require.Equal(t, Token(2_000_000_001), p)
	tok.observe(wall, 3_000_000_000)
	p, _ = tok.next(wall, 0)
	require.Equal(t, Token(3_000_000_001), p, "and stays so for the next name")
}

func TestAFenceFarAheadIsAMatterOfItsOwnName(t *testing.T) {
	var tok tokens
	wall := time.UnixMicro(1_000_000_000)
	far := Token(wall.Add(2 * time.Hour).UnixMicro())
	tok.observe(wall, far)
	p, err := tok.next(wall, far)
	require.NoError(t, err)
	require.Equal(t, far+1, p)
	p, _ = tok.next(wall, 0)
	require.Less(t, p, Token(wall.Add(time.Second).UnixMicro()))
	_, err = tok.next(wall, maxToken)
	require.ErrorIs(t, err, ErrTokensExhausted)
}

func TestConcurrentProposalsDiffer(t *testing.T) {
	var tok tokens
	var seen sync.Map
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				p, _ := tok.next(time.UnixMicro(5), 0)
				if _, twice := seen.LoadOrStore(p, true); twice {
					t.Errorf("%d twice", p)
				}
			}
		})
	}
	wg.Wait()
}

func TestTokensFitIntoLuasNumbersForCenturies(t *testing.T) {
	require.Greater(t, maxToken, Token(time.Date(2255, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()))
	require.Equal(t, maxToken, Token(float64(maxToken)))
}
