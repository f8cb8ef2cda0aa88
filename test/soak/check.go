package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A violation is something that must not be.
type violation struct {
	Kind   string        `json:"kind"`
	At     time.Duration `json:"at"` // since the start of the run
	Detail string        `json:"detail"`
}

// Kinds of violations.
const (
	overlap      = "two held at once"
	regress      = "token went back"
	illegal      = "not linearizable"
	undecided    = "porcupine did not decide"
	twoLeaders   = "two say they lead"
	doubleRun    = "tick run twice"
	staleWrite   = "stale write admitted"
	lostUpdate   = "unit sold twice"
	lostState    = "confirmed state lost"
	notRecovered = "not recovered"
	notEnded     = "process did not end"
	stray        = "lock left behind"
)

// checker judges a history.
type checker struct {
	begun      int64
	violations []violation
}

func (k *checker) found(kind string, at int64, format string, args ...any) {
	k.violations = append(k.violations, violation{kind, time.Duration(at - k.begun), fmt.Sprintf(format, args...)})
}

func (k *checker) since(at int64) time.Duration {
	if at == forever {
		return -1
	}
	return time.Duration(at - k.begun).Round(time.Microsecond)
}

func (k *checker) describe(c *claim) string {
	return fmt.Sprintf("%s (token %d, from %v to %v)", c.process.config.identity(), c.token, k.since(c.start()), k.since(c.end()))
}

// overlaps finds claims of one name, sorted by their start, that begin before another has ended.
func (k *checker) overlaps(name string, claims []*claim) {
	var last *claim // of those so far, the one that ends last
	for _, c := range claims {
		if !c.holds() {
			continue
		}
		if last != nil && c.start() < last.end() && !excused(last, c) {
			k.found(overlap, c.start(), "%s: %s and %s", name, k.describe(last), k.describe(c))
		}
		if last == nil || c.end() > last.end() {
			last = c
		}
	}
}

// excused: a library that tells no validity is not blamed for what a process believes while it is
// stopped. For a claim with a validity that makes no difference: it ends by the clock.
func excused(earlier, later *claim) bool {
	return earlier.until == 0 && earlier.process.WasStopped(later.start(), min(earlier.end(), later.end()))
}

// regressions finds tokens that are not higher than one which was returned before their
// acquisition began, and, of claims that did hold, than one that held before.
func (k *checker) regressions(name string, claims []*claim) {
	byAsked := slices.Clone(claims)
	slices.SortFunc(byAsked, func(a, b *claim) int { return int(a.asked - b.asked) })
	next, highest := 0, (*claim)(nil)
	for _, c := range byAsked {
		for next < len(claims) && claims[next].at < c.asked {
			if highest == nil || claims[next].token > highest.token {
				highest = claims[next]
			}
			next++
		}
		if highest != nil && c.token <= highest.token {
			k.found(regress, c.at, "%s: %s after %s", name, k.describe(c), k.describe(highest))
		}
	}
	var before *claim
	for _, c := range claims {
		if !c.holds() {
			continue
		}
		if before != nil && c.token <= before.token && before.at >= c.asked {
			k.found(regress, c.at, "%s: %s held after %s", name, k.describe(c), k.describe(before))
		}
		if before == nil || c.token > before.token {
			before = c
		}
	}
}

// leaders finds moments at which IsLeader said yes while another relied on a term.
func (k *checker) leaders(leads []yes, terms []*claim) {
	for _, l := range leads {
		for _, t := range terms {
			if t.at > l.end {
				break // sorted
			}
			if t.process != l.process && t.holds() && t.start() < l.begin && l.end < t.end() {
				k.found(twoLeaders, l.begin, "%s said so between %v and %v, and %s led", l.process.config.identity(), k.since(l.begin), k.since(l.end), k.describe(t))
			}
		}
	}
}

// ticks finds ticks that were run more than once.
func (k *checker) ticks(runs []execution) {
	first := map[string]execution{}
	for _, r := range runs {
		key := r.job + "@" + r.tick
		if one, ok := first[key]; ok {
			k.found(doubleRun, r.at, "%s: by %s at %v (token %d) and by %s at %v (token %d)", key,
				one.process.config.identity(), k.since(one.at), one.token, r.process.config.identity(), k.since(r.at), r.token)
			continue
		}
		first[key] = r
	}
}

// ledger judges the writes of one resource, in the order in which the resource carried them out:
// "token left". Each was to take one from what the one before it has left.
func (k *checker) ledger(resource string, gated bool, entries []string) {
	left, highest := int64(stock), int64(0)
	for i, entry := range entries {
		tokenText, leftText, _ := strings.Cut(entry, " ")
		token, err := strconv.ParseInt(tokenText, 10, 64)
		now, err2 := strconv.ParseInt(leftText, 10, 64)
		if err != nil || err2 != nil {
			k.found(lostUpdate, k.begun, "%s: entry %d of the ledger is %q", resource, i, entry)
			return
		}
		if gated && token < highest {
			k.found(staleWrite, k.begun, "%s: entry %d has token %d after %d", resource, i, token, highest)
		}
		if now != left-1 {
			k.found(lostUpdate, k.begun, "%s: entry %d left %d where %d were left before it", resource, i, now, left)
		}
		highest, left = max(highest, token), now
	}
}

// states finds holders that were not given what had been confirmed before they asked. What a
// server may have forgotten meanwhile is counted, and no violation.
func (k *checker) states(name string, claims []*claim, forgot []window) (read, forgotten int) {
	type confirmed struct {
		at    int64
		token int64
		value string
	}
	var saves []confirmed
	for _, c := range claims {
		for _, s := range c.saves {
			if s.done != 0 && s.err == "" {
				saves = append(saves, confirmed{s.done, c.token, s.value})
			}
		}
	}
	slices.SortFunc(saves, func(a, b confirmed) int { return int(a.at - b.at) })
	byAsked := slices.Clone(claims)
	slices.SortFunc(byAsked, func(a, b *claim) int { return int(a.asked - b.asked) })
	next, newest := 0, confirmed{}
	for _, c := range byAsked {
		for next < len(saves) && saves[next].at < c.asked {
			if saves[next].token > newest.token {
				newest = saves[next]
			}
			next++
		}
		if newest.token == 0 {
			continue
		}
		read++
		text, _, _ := strings.Cut(c.state, " ")
		token, _ := strconv.ParseInt(text, 10, 64)
		if token >= newest.token {
			continue
		}
		if slices.ContainsFunc(forgot, func(w window) bool {
			return w.begin <= c.at && (w.end == 0 || w.end >= newest.at)
		}) {
			forgotten++
			continue
		}
		k.found(lostState, c.at, "%s: %s was given %q, and %q was confirmed at %v", name, k.describe(c), c.state, newest.value, k.since(newest.at))
	}
	return read, forgotten
}
