package main

import (
	"fmt"
	"slices"
	"time"
)

// term is one term as its leader was told of it.
type term struct {
	by     *process
	token  int64
	start  int64
	until  int64
	closed int64 // when the function saw its context end; 0: it did not
}

// end is when the leader could rely on it no longer.
func (t *term) end() int64 {
	end := t.until
	if t.closed != 0 {
		end = min(end, t.closed)
	}
	if killed := t.by.Killed(); killed != 0 {
		end = min(end, killed)
	}
	return end
}

func (t *term) String() string { return fmt.Sprintf("term %d of %s", t.token, t.by.config.identity()) }

// termsOf are the terms in a journal, by their start.
func termsOf(entries []told) []*term {
	byToken := map[int64]*term{}
	var all []*term
	for _, e := range entries {
		t := byToken[e.Token]
		switch {
		case e.Kind == led:
			t = &term{by: e.by, token: e.Token, start: e.At, until: e.Until}
			byToken[e.Token] = t
			all = append(all, t)
		case t == nil:
		case e.Kind == held || e.Kind == pausing:
			t.until = max(t.until, e.Until)
		case e.Kind == ended:
			t.closed = e.At
		}
	}
	slices.SortFunc(all, func(a, b *term) int { return int(a.start - b.start) })
	return all
}

// checkTerms finds terms that were valid at one time, and numbers that went back.
func checkTerms(terms []*term) (found []string) {
	var last, highest *term
	for _, t := range terms {
		if last != nil && t.start < last.end() {
			found = append(found, fmt.Sprintf("two terms at one time: %v began %v before the end of %v", t, time.Duration(last.end()-t.start), last))
		}
		if highest != nil && t.token <= highest.token {
			found = append(found, fmt.Sprintf("a number went back: %v after %v", t, highest))
		}
		if last == nil || t.end() > last.end() {
			last = t
		}
		if highest == nil || t.token > highest.token {
			highest = t
		}
	}
	return found
}

// checkLedger finds writes that were admitted after those of a later term.
func checkLedger(tokens []int64) (found []string) {
	for i := 1; i < len(tokens); i++ {
		if tokens[i] < tokens[i-1] {
			found = append(found, fmt.Sprintf("a stale write was admitted: of term %d after one of term %d", tokens[i], tokens[i-1]))
		}
	}
	return found
}
