package main

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

// sound is a run in which nothing went wrong.
func sound() *verdict {
	v := &verdict{terms: &terms{}}
	for _, e := range []event{
		{Kind: began, Replica: 1, Token: 10, At: at(0), Until: at(2)},
		{Kind: trusted, Replica: 1, Token: 10, Until: at(3)},
		{Kind: began, Replica: 2, Token: 20, At: at(3), Until: at(5)}, // 1 was killed
		{Kind: began, Replica: 3, Token: 30, At: at(5), Until: at(7)},
		{Kind: ended, Replica: 2, Token: 20, At: at(6)}, // 2 was frozen
		{Kind: ended, Replica: 3, Token: 30, At: at(6)},
		{Kind: began, Replica: 2, Token: 40, At: at(6), Until: at(8)}, // 3 has resigned
	} {
		v.terms.note(e)
	}
	v.ticks = countTicks([]time.Time{at(1), at(2), at(3)}, at(0), at(4))
	v.units = units{{product: "sku-01", started: 3, left: 1, sales: []sale{{10, 3, 1}, {10, 2, 1}}}}
	return v
}

func printed(v *verdict) string {
	var out bytes.Buffer
	v.print(&out)
	return out.String()
}

func TestASoundRunExitsWithZero(t *testing.T) {
	v := sound()
	v.refused = 1
	assert.Zero(t, v.exitCode(), v.wrong())
	assert.Equal(t, `
terms   led 4            two at once 0
ticks   due 3            run once 3   run twice 0   missed 0
units   started with 3   sold 2       left 1        stale writes refused 1
        oversold 0       stale writes admitted 0

Nothing was doubled, oversold or admitted stale.
`, printed(v))
}

func TestWhatMustNotBeExitsWithOne(t *testing.T) {
	for says, spoil := range map[string]func(v *verdict){
		"tick 12:00:02 was run 2 times": func(v *verdict) {
			v.ticks = countTicks([]time.Time{at(1), at(2), at(2), at(3)}, at(0), at(4))
		},
		"tick 12:00:09 was run 2 times": func(v *verdict) { // though it is not among those that are counted
			v.ticks = countTicks([]time.Time{at(9), at(9)}, at(0), at(4))
		},
		"unit 3 was sold again, by replica 2": func(v *verdict) {
			v.units[0].sales = []sale{{10, 3, 1}, {11, 3, 2}}
			v.units[0].left = 2
		},
		"unit 0 was sold, which there never was": func(v *verdict) {
			v.units[0].sales = []sale{{10, 3, 1}, {11, 0, 2}}
		},
		"unit 4 was sold, which there never was": func(v *verdict) {
			v.units[0].sales = []sale{{10, 3, 1}, {11, 4, 2}}
		},
		"2 units are left, and should be 1": func(v *verdict) { v.units[0].left = 2 },
		"0 units are left, and should be 1": func(v *verdict) { v.units[0].left = 0 },
		"replica 1 sold unit 2 with token 10 after token 11": func(v *verdict) {
			v.units[0].sales = []sale{{11, 3, 2}, {10, 2, 1}}
		},
		"replica 2 led term 50 for 1s while replica 1 still led term 45": func(v *verdict) {
			v.terms.note(event{Kind: began, Replica: 1, Token: 45, At: at(10), Until: at(12)})
			v.terms.note(event{Kind: began, Replica: 2, Token: 50, At: at(11), Until: at(13)})
		},
		"replica 2 led term 50 for 500ms while replica 1 still led term 45": func(v *verdict) {
			v.terms.note(event{Kind: began, Replica: 1, Token: 45, At: at(10), Until: at(12)})
			v.terms.note(event{Kind: trusted, Replica: 1, Token: 45, Until: at(14)})
			v.terms.note(event{Kind: ended, Replica: 1, Token: 45, At: at(11.5)})
			v.terms.note(event{Kind: began, Replica: 2, Token: 50, At: at(11), Until: at(13)})
		},
		"term 50 of replica 2 came after term 50": func(v *verdict) { // one token for two
			v.terms.note(event{Kind: began, Replica: 1, Token: 50, At: at(10), Until: at(11)})
			v.terms.note(event{Kind: began, Replica: 2, Token: 50, At: at(11), Until: at(12)})
		},
		"term 49 of replica 2 came after term 50": func(v *verdict) {
			v.terms.note(event{Kind: began, Replica: 1, Token: 50, At: at(10), Until: at(11)})
			v.terms.note(event{Kind: began, Replica: 2, Token: 49, At: at(11), Until: at(12)})
		},
		"replica 2 ended by itself": func(v *verdict) { v.broken = []string{"replica 2 ended by itself: exit status 1"} },
	} {
		v := sound()
		spoil(v)
		assert.Equal(t, 1, v.exitCode(), says)
		assert.Contains(t, printed(v), says)
		assert.NotContains(t, printed(v), "Nothing was doubled")
	}
}

func TestManyWrongsAreListedInPart(t *testing.T) {
	v := sound()
	for i := range 30 {
		v.broken = append(v.broken, fmt.Sprint("wrong ", i))
	}
	assert.Contains(t, printed(v), "WRONG: … and 18 more")
}

func TestATickCountsWhenItsWholeSecondWasInTheRun(t *testing.T) {
	for _, c := range []struct {
		from, to          float64
		runs              []float64
		due, once, missed int
	}{
		{from: 0, to: 4, runs: []float64{1, 2, 3}, due: 3, once: 3},
		{from: 0, to: 3.9, runs: []float64{1, 2, 3}, due: 2, once: 2},
		{from: 0.8, to: 4, runs: []float64{1, 2, 3}, due: 2, once: 2}, // the scheduler may not have run at 1
		{from: 0.7, to: 4, runs: []float64{2}, due: 3, once: 1, missed: 2},
		{from: 0, to: 0},
	} {
		var runs []time.Time
		for _, r := range c.runs {
			runs = append(runs, at(r))
		}
		assert.Equal(t, ticks{due: c.due, once: c.once, missed: c.missed}, countTicks(runs, at(c.from), at(c.to)), "%+v", c)
	}
	assert.Zero(t, countTicks(nil, time.Time{}, at(5)).due, "no replica was ever ready")
}

func TestASaleIsReadAsItWasWritten(t *testing.T) {
	want := sale{token: redlock.Token(1795254485180564), unit: 30, replica: 2}
	got, err := parseSale(want.String())
	require.NoError(t, err)
	assert.Equal(t, want, got)
	_, err = parseSale("x")
	require.Error(t, err)
}
