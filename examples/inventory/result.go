package main

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// A result is what came of a sale.
type result struct {
	way     way
	sizes   sizes
	began   time.Time
	took    time.Duration
	answers []answer
	freeze  *freeze // nil if nobody was frozen

	left, ordered int // units, by the database
	stale         int // sales that the gate has refused
	meanWaiting   float64
	mostWaiting   int
}

// sold is how many units buyers were told that they have. Each buys one.
func (r *result) sold() int { return r.with(http.StatusOK) }

func (r *result) with(status int) (n int) {
	for _, a := range r.answers {
		if a.status == status {
			n++
		}
	}
	return n
}

// failed is how many answers were none of those that a shop gives.
func (r *result) failed() int {
	return len(r.answers) - r.with(http.StatusOK) - r.with(http.StatusConflict)
}

func (r *result) comeAgain() (n int) {
	for _, a := range r.answers {
		n += a.comeAgain
	}
	return n
}

func (r *result) gone() int     { return r.sizes.units - r.left }
func (r *result) oversold() int { return max(0, r.sold()-r.sizes.units) }

// lost is how many units were sold and are in the stock again.
func (r *result) lost() int { return max(0, r.ordered-r.gone()) }

// rate is how many orders were answered in a second, while nobody was frozen and not all were placed.
func (r *result) rate() float64 {
	end := r.lastPlaced()
	took := end.Sub(r.began)
	counts := func(at time.Time) bool { return !at.After(end) }
	if f := r.freeze; f != nil {
		if end.Before(f.to) {
			end = f.from
			took = end.Sub(r.began)
		} else {
			took -= f.to.Sub(f.from)
		}
		counts = func(at time.Time) bool { return !at.After(end) && (at.Before(f.from) || at.After(f.to)) }
	}
	if took <= 0 {
		return 0
	}
	n := 0
	for _, a := range r.answers {
		if counts(a.ended) {
			n++
		}
	}
	return float64(n) / took.Seconds()
}

// lastPlaced is when the last order was.
func (r *result) lastPlaced() time.Time {
	last := r.began
	for _, a := range r.answers {
		if a.begun.After(last) {
			last = a.begun
		}
	}
	return last
}

// latency is how long buyers waited for the answer, with the times they had to come again: this many percent
// of them not longer.
func (r *result) latency(percent int) time.Duration {
	if len(r.answers) == 0 {
		return 0
	}
	var all []time.Duration
	for _, a := range r.answers {
		all = append(all, a.ended.Sub(a.begun))
	}
	slices.Sort(all)
	return all[(len(all)-1)*percent/100]
}

// stop is the longest time in which nothing was sold, as long as orders were still placed and units sold.
func (r *result) stop() (longest time.Duration) {
	var sales []time.Time
	for _, a := range r.answers {
		if a.status == http.StatusOK {
			sales = append(sales, a.ended)
		}
	}
	lastPlaced := r.lastPlaced()
	slices.SortFunc(sales, time.Time.Compare)
	last := r.began
	for _, at := range sales {
		if at.After(lastPlaced) {
			at = lastPlaced
		}
		longest = max(longest, at.Sub(last))
		last = at
	}
	return longest
}

// wrong is all that must not be in a way that is correct.
func (r *result) wrong() (wrong []string) {
	says := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, string(r.way)+": "+fmt.Sprintf(format, args...))
		}
	}
	says(r.failed() == 0, "%d orders failed", r.failed())
	says(r.sold() == r.ordered, "%d units were sold, and there are orders for %d", r.sold(), r.ordered)
	says(r.sold() == r.gone(), "%d units were sold, and %d are gone", r.sold(), r.gone())
	says(r.sold() == min(r.sizes.units, r.sizes.orders), "%d units were sold of %d, to %d orders", r.sold(), r.sizes.units, r.sizes.orders)
	return wrong
}
