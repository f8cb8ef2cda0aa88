package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

var dawn = time.Unix(1_700_000_000, 0)

// at is an order that was placed and answered after so many seconds.
func at(begun, ended float64, status int) answer {
	after := func(s float64) time.Time { return dawn.Add(time.Duration(s * float64(time.Second))) }
	return answer{begun: after(begun), ended: after(ended), status: status}
}

func TestOfAFreezeTheStopIsCountedAndNotTheRate(t *testing.T) {
	t.Parallel()
	r := &result{way: guarded, began: dawn, took: 5 * time.Second, answers: []answer{
		at(0, 0.5, http.StatusOK), at(0, 1, http.StatusOK), // then one is frozen from 1.1 s to 3.1 s
		at(1, 2.5, http.StatusOK), at(2.5, 2.6, http.StatusOK),
		at(1, 3.5, http.StatusOK), at(3.6, 4, http.StatusConflict), at(4.1, 5, http.StatusConflict),
	}}
	r.freeze = &freeze{from: dawn.Add(1100 * time.Millisecond), to: dawn.Add(3100 * time.Millisecond)}
	assert.Equal(t, 1500*time.Millisecond, r.stop())
	assert.InDelta(t, 4/2.1, r.rate(), 1e-9)
	assert.InDelta(t, 0.9, r.latency(50).Seconds(), 1e-6)
	assert.Equal(t, 2500*time.Millisecond, r.latency(100))
}

func TestARunThatIsOverBeforeTheThawHasTheRateFromBeforeTheFreeze(t *testing.T) {
	t.Parallel()
	r := &result{began: dawn, answers: []answer{
		at(0, 0.5, http.StatusOK), at(0, 1, http.StatusOK), at(1, 1.5, http.StatusOK), at(1, 3.5, http.StatusOK),
	}}
	r.freeze = &freeze{from: dawn.Add(time.Second + 1), to: dawn.Add(3 * time.Second)}
	assert.InDelta(t, 2, r.rate(), 1e-3)
}

func TestWhatIsWrongIsFoundAndOnlyThat(t *testing.T) {
	t.Parallel()
	sold := func(n int) (answers []answer) {
		for range n {
			answers = append(answers, at(0, 1, http.StatusOK))
		}
		return answers
	}
	for says, r := range map[string]*result{
		"":                      {sizes: sizes{units: 2, orders: 3}, ordered: 2, left: 0, answers: append(sold(2), at(0, 1, http.StatusConflict))},
		"1 orders failed":       {sizes: sizes{units: 2, orders: 3}, ordered: 2, left: 0, answers: append(sold(2), at(0, 1, 500))},
		"there are orders for":  {sizes: sizes{units: 2, orders: 2}, ordered: 1, left: 0, answers: sold(2)},
		"2 units were sold, an": {sizes: sizes{units: 2, orders: 2}, ordered: 2, left: 1, answers: sold(2)},
		"3 units were sold of":  {sizes: sizes{units: 2, orders: 3}, ordered: 3, left: -1, answers: sold(3)},
		"1 units were sold of":  {sizes: sizes{units: 2, orders: 3}, ordered: 1, left: 1, answers: sold(1)},
	} {
		r.way, r.began, r.took = guarded, dawn, time.Second
		assert.Equal(t, says != "", len(r.wrong()) > 0, says)
		var out strings.Builder
		assert.Equal(t, says == "", printReport(&out, []*result{r}, "waits"), says)
		assert.Contains(t, out.String(), says)
		r.way = noGuard
		assert.True(t, printReport(&out, []*result{r}, "waits"), "nobody has promised anything")
	}
}
