package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/test/rig"
)

// told is a claim of a client, as it would have reported it: times in milliseconds.
func told(client int, token, asked, at, until, ended int64) *claim {
	ms := int64(time.Millisecond)
	return &claim{
		process: &process{config: clientConfig{Client: client}}, load: "lock", name: "lock/x",
		token: token, asked: asked * ms, at: at * ms, until: until * ms, ended: ended * ms,
	}
}

// kinds judges a history of one name and says what was found, each kind once.
func kinds(claims ...*claim) []string {
	k := &checker{}
	k.overlaps("x", claims)
	k.regressions("x", claims)
	k.linearize("x", claims, true)
	found := map[string]bool{}
	for _, v := range k.violations {
		found[v.Kind] = true
	}
	return sortedKeys(found)
}

func sortedKeys(m map[string]bool) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func TestABrokenHistoryIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		claims []*claim
		found  []string
	}{
		"one after the other": {[]*claim{
			told(0, 1, 1, 2, 100, 50), told(1, 2, 10, 51, 150, 60),
		}, nil},
		"by the end of the validity": {[]*claim{
			told(0, 1, 1, 2, 100, 0), told(1, 2, 10, 101, 250, 200),
		}, nil},
		"a lease that was over when it was returned": {[]*claim{
			told(0, 1, 1, 120, 100, 130), told(1, 2, 10, 110, 250, 200),
		}, nil},
		"two at once": {[]*claim{
			told(0, 1, 1, 2, 100, 0), told(1, 2, 10, 99, 250, 200),
		}, []string{illegal, overlap}},
		"two at once, the first of which was killed": {[]*claim{
			told(0, 1, 1, 2, 100, 0), told(1, 2, 10, 20, 250, 200),
		}, []string{illegal, overlap}},
		"two at once, behind one that is long over": {[]*claim{
			told(0, 1, 1, 2, 500, 500), told(1, 2, 3, 4, 10, 10), told(2, 3, 11, 12, 20, 20),
		}, []string{illegal, overlap}},
		"a token that goes back": {[]*claim{
			told(0, 5, 1, 2, 100, 50), told(1, 4, 51, 52, 150, 60),
		}, []string{illegal, regress}},
		"the same token twice": {[]*claim{
			told(0, 5, 1, 2, 100, 50), told(1, 5, 51, 52, 150, 60),
		}, []string{illegal, regress}},
		"a token that goes back, though both were asked for at once": {[]*claim{
			told(0, 5, 1, 2, 100, 50), told(1, 4, 1, 52, 150, 60),
		}, []string{illegal, regress}},
	} {
		assert.Equal(t, c.found, kinds(c.claims...), name)
	}
}

// The sweep and porcupine know nothing of each other.
func TestTheSweepAndPorcupineAgree(t *testing.T) {
	broken := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 0))
		var claims []*claim
		now := int64(1)
		for i := range 6 {
			asked := now + r.Int64N(5)
			at := asked + 1 + r.Int64N(20)
			until := at + r.Int64N(30)
			ended := int64(0)
			if r.IntN(2) == 0 {
				ended = at + r.Int64N(40)
			}
			token := int64(i + 1)
			if r.IntN(20) == 0 {
				token = 1 + r.Int64N(6)
			}
			c := told(i, token, asked, at, until, ended)
			claims = append(claims, c)
			now = c.end()/int64(time.Millisecond) + r.Int64N(12) - 3
		}
		slices.SortFunc(claims, func(a, b *claim) int { return int(a.at - b.at) })
		var holding []*claim // the others are no business of porcupine's
		for _, c := range claims {
			if c.holds() {
				holding = append(holding, c)
			}
		}
		k := &checker{}
		k.overlaps("x", holding)
		k.regressions("x", holding)
		legal := porcupine.CheckOperations(lockModel, operations(holding, true))
		require.Equalf(t, len(k.violations) == 0, legal, "seed %d: %v", seed, k.violations)
		if !legal {
			broken++
		}
	}
	require.Greater(t, broken, 300)
	require.Less(t, broken, 2700)
}

func TestALedgerWithAStaleWriteOrALostUpdateIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		entries []string
		found   string
	}{
		"sound":                    {[]string{"5 999999", "5 999998", "7 999997"}, ""},
		"a stale write":            {[]string{"5 999999", "7 999998", "5 999997"}, staleWrite},
		"a unit sold twice":        {[]string{"5 999999", "7 999999"}, lostUpdate},
		"a write on an older read": {[]string{"5 999999", "7 999998", "8 999998"}, lostUpdate},
		"nonsense":                 {[]string{"5"}, lostUpdate},
	} {
		k := &checker{}
		k.ledger("sku", true, c.entries)
		if c.found == "" {
			assert.Empty(t, k.violations, name)
		} else if assert.Len(t, k.violations, 1, name) {
			assert.Equal(t, c.found, k.violations[0].Kind, name)
		}
	}
}

func TestATickThatIsRunTwiceIsFound(t *testing.T) {
	p := &process{}
	k := &checker{}
	k.ticks([]execution{{p, "job", "1000", 1, 1}, {p, "job", "2000", 2, 2}, {p, "other", "1000", 3, 1}})
	require.Empty(t, k.violations)
	k.ticks([]execution{{p, "job", "1000", 1, 1}, {p, "job", "1000", 2, 2}})
	require.Len(t, k.violations, 1)
}

func TestTwoWhoSayTheyLeadAreFound(t *testing.T) {
	one, two := &process{config: clientConfig{Client: 1}}, &process{config: clientConfig{Client: 2}}
	term := &claim{process: one, at: 100, until: 200}
	k := &checker{}
	k.leaders([]yes{{one, 150, 151}, {two, 99, 101}, {two, 199, 201}, {two, 300, 301}}, []*claim{term})
	require.Empty(t, k.violations, "it was the leader itself, or perhaps before or after its term")
	k.leaders([]yes{{two, 150, 151}}, []*claim{term})
	require.Len(t, k.violations, 1)
}

func TestAConfirmedStateThatIsGoneIsFound(t *testing.T) {
	first, second := told(0, 1, 1, 2, 100, 50), told(1, 2, 51, 52, 150, 60)
	first.saves = []save{{begun: first.at + 1, done: first.at + 2, value: "1 client-0.0"}}
	judge := func(state string, forgot ...window) []violation {
		second.state = state
		k := &checker{}
		k.states("x", []*claim{first, second}, forgot)
		return k.violations
	}
	require.Empty(t, judge("1 client-0.0"))
	require.Len(t, judge(""), 1)
	require.Empty(t, judge("", window{begin: first.at + 3, end: first.at + 4}), "a node restarted in between")
	require.Len(t, judge("", window{begin: 1, end: 2}), 1, "a node restarted long before")
	first.saves[0].err = "no quorum"
	require.Empty(t, judge(""), "it was not confirmed")
}

func TestAProcessThatIsStoppedIsNotBlamedForWhatItBelieves(t *testing.T) {
	first, second := told(0, 0, 1, 2, 0, 100), told(1, 0, 10, 20, 0, 30)
	judge := func() int {
		k := &checker{}
		k.overlaps("x", []*claim{first, second})
		return len(k.violations)
	}
	require.Equal(t, 1, judge())
	first.process.Stops = []rig.Window{{Begin: 10 * int64(time.Millisecond), End: 40 * int64(time.Millisecond)}}
	require.Zero(t, judge())
	first.process.Stops = []rig.Window{{Begin: 25 * int64(time.Millisecond), End: 40 * int64(time.Millisecond)}}
	require.Equal(t, 1, judge(), "it ran when the other acquired")
}

func TestASeedIsAScheduleAndTheAssumptionsAreKept(t *testing.T) {
	s := defaults().setup()
	s.clocks = true
	one, again, other := fmt.Sprint(schedule(7, s)), fmt.Sprint(schedule(7, s)), fmt.Sprint(schedule(8, s))
	require.Equal(t, one, again)
	require.NotEqual(t, one, other)
	seen := map[string]bool{}
	for seed := range uint64(20) {
		for _, f := range schedule(seed, s) {
			seen[f.Kind] = true
			switch {
			case len(f.Nodes) > 0 && f.Toxic == nil:
				assert.LessOrEqual(t, f.Step, time.Duration(0), "a node's clock is never set forward: %v", f)
				assert.True(t, f.PPM >= 0 && f.PPM <= fastest, f)
			case f.Step != 0:
				assert.Less(t, 2*f.Step.Abs()+time.Second, s.maxTTL, "wall clocks stay together: %v", f)
			}
		}
	}
	require.Len(t, seen, 16, sortedKeys(seen))
}
