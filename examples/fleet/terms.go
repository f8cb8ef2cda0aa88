package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/redlock"
)

// A term is a leadership, as its leader told of it.
type term struct {
	number  redlock.Token
	replica int
	began   time.Time
	until   time.Time // the latest end of validity that it was given
	ended   time.Time // when the leading function was about to return; zero if it never did
}

// end is the moment from which on the leader could not think any more that it leads.
//
// A leader that was killed says no more, and one that was frozen says it too late. But both told
// how long their lease was valid, and IsLeader and the context of a term go by exactly that, by
// a clock that no signal stops: so a term ends with the validity that its leader last knew of,
// or when its function returned, whichever comes first. All processes are on one machine, so
// that their clocks can be compared.
//
// What remains: a leader tells of an extension within 20 ms, so that one which is killed in that
// time knew of a validity that it never told. An overlap with that alone is not seen here.
func (t *term) end() time.Time {
	if t.ended.IsZero() || t.ended.After(t.until) {
		return t.until
	}
	return t.ended
}

// terms are all leaderships of the run.
type terms struct {
	all []*term
}

func (ts *terms) note(e event) {
	i := slices.IndexFunc(ts.all, func(t *term) bool { return t.number == e.Token && t.replica == e.Replica })
	if i < 0 {
		if e.Kind == began {
			ts.all = append(ts.all, &term{number: e.Token, replica: e.Replica, began: e.At, until: e.Until})
		}
		return
	}
	switch t := ts.all[i]; e.Kind {
	case trusted:
		if e.Until.After(t.until) {
			t.until = e.Until
		}
	case ended:
		t.ended = e.At
	}
}

// leader is the replica that began the newest term, if it has not said that it ended.
func (ts *terms) leader() (replica int, ok bool) {
	if len(ts.all) == 0 {
		return 0, false
	}
	newest := slices.MaxFunc(ts.all, func(a, b *term) int { return cmp.Compare(a.number, b.number) })
	return newest.replica, newest.ended.IsZero()
}

// wrong tells of terms that overlap, and of numbers that do not grow.
func (ts *terms) wrong() (wrong []string) {
	byTime := slices.Clone(ts.all)
	slices.SortStableFunc(byTime, func(a, b *term) int { return a.began.Compare(b.began) })
	for i, b := range byTime {
		for _, a := range byTime[:i] {
			if overlap := a.end().Sub(b.began); overlap > 0 {
				wrong = append(wrong, fmt.Sprintf("replica %d led term %d for %v while replica %d still led term %d",
					b.replica, b.number, overlap.Round(time.Microsecond), a.replica, a.number))
			}
			if b.number <= a.number {
				wrong = append(wrong, fmt.Sprintf("term %d of replica %d came after term %d", b.number, b.replica, a.number))
			}
		}
	}
	return wrong
}
