package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// good is a run in which nothing is wrong.
func good() book {
	return book{
		initial: 3,
		shelves: map[string]shelf{"a": {Left: 41, Sold: -38}, "b": {Left: 3}},
		entries: []entry{
			{ID: "1", SKU: "a", Token: 7, Units: 2, Left: 1},
			{ID: "2", SKU: "a", Token: 9, Units: -40, Left: 41},
		},
		written: []string{"1"}, // of 2 nobody was told: its process was killed
		refused: []event{{ID: "3", Token: 7, Seen: 9}},
	}
}

func TestASoundRunIsFoundSound(t *testing.T) {
	b := good()
	assert.Equal(t, account{Writes: 2, Sold: 2, Gone: 2}, audit(b))
	require.NoError(t, balanced(b.initial, b.shelves))
}

func TestWhatIsWrongIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(b *book)
		count func(a account) int
		says  string
	}{
		"a sale is lost": {
			func(b *book) { b.entries[1].Left, b.shelves["a"] = 43, shelf{Left: 43, Sold: -38} },
			func(a account) int { return a.Lost }, "a: sale 2 of -40 units has left 43 of 1",
		},
		"the stock was written past the journal": {
			func(b *book) { b.shelves["b"] = shelf{Left: 2} },
			func(a account) int { return a.Lost }, "b: 2 are left, and the last sale has left 3",
		},
		"a stale write landed": {
			func(b *book) { b.entries[1].Token = 6 },
			func(a account) int { return a.Disorder }, "a: sale 2 with token 6 came after token 7",
		},
		"more is sold than there was": {
			func(b *book) {
				b.entries[0].Units, b.entries[0].Left = 5, -2
				b.entries[1].Left, b.shelves["a"] = 38, shelf{Left: 38, Sold: -35}
			},
			func(a account) int { return a.Negative }, "a: sale 1 has left -2",
		},
		"a sale that was confirmed is not there": {
			func(b *book) { b.written = append(b.written, "4") },
			func(a account) int { return a.Missing }, "sale 4 was confirmed and is not in the journal",
		},
		"a sale that was refused is there": {
			func(b *book) { b.refused[0].ID = "2" },
			func(a account) int { return a.Ghosts }, "sale 2 was refused and is in the journal",
		},
		"a sale is there twice": {
			func(b *book) { b.entries[1].ID = "1" },
			func(a account) int { return a.Ghosts }, "sale 1 is in the journal twice",
		},
		"a write in time was refused": {
			func(b *book) { b.refused[0].Seen = 7 },
			func(a account) int { return a.Unfounded }, "sale 3 with token 7 was refused for token 7",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := good()
			c.spoil(&b)
			a := audit(b)
			assert.Equal(t, 1, c.count(a))
			assert.Contains(t, a.Wrong, c.says)
			r := result{Gated: true, Refused: 1, Stops: 1, Kills: 1, account: a}
			require.ErrorContains(t, r.verdict(), c.says)
			r.Gated = false
			require.NoError(t, r.verdict())
		})
	}
}

func TestOneLookTellsOfAnImbalance(t *testing.T) {
	require.Error(t, balanced(3, map[string]shelf{"a": {Left: 2, Sold: 2}}))
	require.Error(t, balanced(3, map[string]shelf{"a": {Left: -1, Sold: 4}}))
	require.NoError(t, balanced(3, map[string]shelf{"a": {Left: 0, Sold: 3}}))
}

func TestARunThatShowsNothingFails(t *testing.T) {
	require.Error(t, result{Gated: true, Stops: 1, Kills: 1}.verdict(), "no stale write was refused")
	require.Error(t, result{}.verdict(), "without the gate nothing went wrong")
}
