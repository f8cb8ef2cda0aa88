package dashboard

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
)

const (
	maxElections = 200 // that are kept, and shown
	maxTerms     = 50  // of an election
)

// elections are those that were seen, with their terms.
type elections struct {
	mu     sync.Mutex
	byName map[string]*election
	total  int // in the last listing
}

type election struct {
	name    string
	locals  []*leader.Elector // of this process; not empty where it is followed
	terms   []termSeen        // oldest first
	leading bool              // the newest term goes on
	seen    time.Time         // when something was known of it last
}

// A termSeen is a term as it is shown.
type termSeen struct {
	Number  redlock.Token `json:"number"`
	Leader  string        `json:"leader"`
	Address string        `json:"address,omitempty"`
	Labels  []string      `json:"labels,omitempty"`
	Since   int64         `json:"since"` // by the leader's clock
	Until   int64         `json:"until"` // 0 while it goes on
	seen    time.Time     // when it was seen to go on last
}

// An electionRow is what the page is told of an election.
type electionRow struct {
	ID       string     `json:"id"`
	Name     string     `json:"name"`
	Leading  bool       `json:"leading"`
	Terms    []termSeen `json:"terms,omitempty"`
	Followed bool       `json:"followed,omitempty"`
	Ours     bool       `json:"ours,omitempty"` // this process leads, and so can resign
	Here     bool       `json:"here,omitempty"` // who leads, as far as is known, is a candidate of this process
	Problems []string   `json:"problems,omitempty"`
}

func (e *elections) init(electors []*leader.Elector) {
	e.byName = map[string]*election{}
	for _, elector := range electors {
		el := e.of(condition(elector).Name)
		el.locals = append(el.locals, elector)
	}
}

// of is the election of this name; mu is held, or nobody else knows of e yet.
func (e *elections) of(name string) *election {
	el := e.byName[name]
	if el == nil {
		el = &election{name: name}
		e.byName[name] = el
	}
	return el
}

// know gives the election of a candidate by its true name. Until a term is seen it is known by what its health
// check says, where JSON has replaced what is no UTF-8. mu is held.
func (e *elections) know(elector *leader.Elector, name string) *election {
	el := e.of(name)
	if slices.Contains(el.locals, elector) {
		return el
	}
	for _, other := range e.byName {
		other.locals = slices.DeleteFunc(other.locals, func(l *leader.Elector) bool { return l == elector })
		if len(other.locals) == 0 && len(other.terms) == 0 && other != el {
			delete(e.byName, other.name)
		}
	}
	el.locals = append(el.locals, elector)
	return el
}

// follow takes note of the terms of an election of this process.
func (h *Handler) follow(elector *leader.Elector) {
	for term := range elector.Watch(h.ctx) {
		h.elections.mu.Lock()
		h.elections.know(elector, term.Name).note(term, time.Now(), true)
		h.elections.mu.Unlock()
		h.showElections()
	}
}

// listed takes note of the elections among what is held, and of those that are not: nobody leads there. Of
// all that there are, terms has the first that were found. What is followed is known better.
func (e *elections) listed(terms []leader.Term, all int, at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	found := map[string]bool{}
	for _, term := range terms {
		el := e.of(term.Name)
		found[term.Name] = true
		if len(el.locals) == 0 {
			el.note(term, at, false)
		} else if n := len(el.terms); n > 0 && el.terms[n-1].Number == term.Number {
			el.seen, el.terms[n-1].seen = at, at
		}
	}
	e.total = all
	for name, el := range e.byName {
		if !found[name] && len(el.locals) == 0 && all == len(terms) { // or it may be among the others
			el.end(at)
		}
	}
	e.trim()
}

// note takes note of who leads: without a number, nobody.
func (el *election) note(term leader.Term, at time.Time, followed bool) {
	if term.Number == 0 {
		el.seen = at
		el.end(at)
		return
	}
	if n := len(el.terms); n > 0 {
		last := &el.terms[n-1]
		switch {
		case term.Number < last.Number:
			return // a listing that began before the newest term
		case term.Number == last.Number:
			last.Until, last.seen = 0, at // it may have looked vacant while it was written
			el.leading, el.seen = true, at
			return
		case el.leading && followed:
			el.end(term.Since) // nobody but the two was seen
		case el.leading:
			el.end(last.seen)
		}
	}
	seen := termSeen{
		Number: term.Number, Leader: brief(term.Leader), Address: brief(term.Address), Since: stamp(term.Since), seen: at,
	}
	if term.Since.IsZero() || term.Since.After(at) {
		seen.Since = stamp(at)
	}
	for key, value := range term.Labels {
		seen.Labels = append(seen.Labels, brief(key+"="+value))
	}
	slices.Sort(seen.Labels)
	el.terms = append(el.terms, seen)
	el.terms = el.terms[max(0, len(el.terms)-maxTerms):]
	el.leading, el.seen = true, at
}

// end ends the newest term, if it goes on.
func (el *election) end(at time.Time) {
	if !el.leading {
		return
	}
	el.leading = false
	last := &el.terms[len(el.terms)-1]
	last.Until = max(stamp(at), last.Since)
}

// trim forgets the elections of which nothing was heard for longest, where there are too many.
func (e *elections) trim() {
	var others []*election
	for _, el := range e.byName {
		if len(el.locals) == 0 {
			others = append(others, el)
		}
	}
	slices.SortFunc(others, func(a, b *election) int {
		return cmp.Or(b.seen.Compare(a.seen), strings.Compare(a.name, b.name))
	})
	for _, el := range others[min(len(others), maxElections):] {
		delete(e.byName, el.name)
	}
}

func (e *elections) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return max(e.total, len(e.byName))
}

// localsOf are the candidates that this process has for an election.
func (e *elections) localsOf(name string) []*leader.Elector {
	e.mu.Lock()
	defer e.mu.Unlock()
	if el := e.byName[name]; el != nil {
		return slices.Clone(el.locals) // know may take one away
	}
	return nil
}

func (h *Handler) showElections() {
	e := &h.elections
	e.mu.Lock()
	defer e.mu.Unlock()
	var rows []electionRow
	for _, el := range e.byName {
		row := electionRow{
			ID: idOf(el.name), Name: show(el.name), Leading: el.leading,
			Terms: slices.Clone(el.terms), Followed: len(el.locals) > 0,
		}
		for _, elector := range el.locals {
			c := condition(elector)
			row.Ours = row.Ours || c.Leading
			// One that has lost its lease leads no more, and without a quorum is not known to be replaced.
			row.Here = row.Here || el.leading && el.terms[len(el.terms)-1].Leader == brief(c.Identity)
			if c.Problem != "" {
				row.Problems = append(row.Problems, brief(c.Identity+": "+c.Problem))
			}
			if c.Unfit != "" {
				row.Problems = append(row.Problems, brief(c.Identity+" is no candidate: "+c.Unfit))
			}
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b electionRow) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	items := make([]item, len(rows))
	for i, row := range rows {
		items[i] = item{row.ID, row}
	}
	h.board.put(electionsSection, items)
}

// A candidacy is what an Elector says of itself.
type candidacy struct {
	Name     string `json:"name"`
	Identity string `json:"identity"`
	Leading  bool   `json:"leading"`
	Problem  string `json:"problem"`
	Unfit    string `json:"unfit"`
}

// condition asks an Elector how it does. Its health check is where it says so.
func condition(e *leader.Elector) candidacy {
	var c candidacy
	var answer memory
	e.Healthz().ServeHTTP(&answer, &http.Request{Method: http.MethodGet})
	_ = json.Unmarshal(answer.Bytes(), &c) // without an answer, nothing is known
	return c
}

// memory is an http.ResponseWriter that keeps the body.
type memory struct {
	bytes.Buffer
	header http.Header
}

func (m *memory) WriteHeader(int) {}

func (m *memory) Header() http.Header {
	if m.header == nil {
		m.header = http.Header{}
	}
	return m.header
}
