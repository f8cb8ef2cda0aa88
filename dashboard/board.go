package dashboard

import (
	"encoding/json"
	"slices"
	"sync"
)

// A board is what the pages show: sections of rows, each encoded once for all pages, and numbered by when
// it changed. So a stream has to remember one number, and a slow one is sent the newest rows and no queue of
// older ones.
type board struct {
	mu       sync.Mutex
	change   uint64
	sections []*section
	changed  chan struct{} // closed at the next change
}

type section struct {
	name    string
	order   []string // ids of the rows
	ordered uint64   // when that changed
	rows    map[string]row
}

type row struct {
	text    json.RawMessage
	changed uint64
}

// An item is a row to be.
type item struct {
	id    string
	value any
}

// The sections, in the order in which they are sent.
const (
	fleetSection      = "fleet"
	nodesSection      = "nodes"
	electionsSection  = "elections"
	jobsSection       = "jobs"
	contentionSection = "contention"
)

func newBoard() *board {
	b := &board{changed: make(chan struct{})}
	for _, name := range []string{fleetSection, nodesSection, electionsSection, jobsSection, contentionSection} {
		b.sections = append(b.sections, &section{name: name, rows: map[string]row{}})
	}
	return b
}

// put replaces the rows of a section.
func (b *board) put(name string, items []item) {
	order := make([]string, len(items))
	texts := make([]json.RawMessage, len(items))
	for i, it := range items {
		text, err := json.Marshal(it.value)
		if err != nil {
			panic("dashboard: what consists of numbers and strings can always be encoded: " + err.Error())
		}
		order[i], texts[i] = it.id, text
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.sections[slices.IndexFunc(b.sections, func(s *section) bool { return s.name == name })]
	next := b.change + 1
	rows := make(map[string]row, len(items))
	changed := s.ordered == 0 || !slices.Equal(order, s.order) // also when there is nothing, and that is news
	if changed {
		s.order, s.ordered = order, next
	}
	for i, id := range order {
		before, known := s.rows[id]
		if known && string(before.text) == string(texts[i]) {
			rows[id] = before
			continue
		}
		rows[id], changed = row{texts[i], next}, true
	}
	s.rows = rows
	if changed {
		b.change = next
		close(b.changed)
		b.changed = make(chan struct{})
	}
}

// An update is what a page is sent of one section.
type update struct {
	section string
	Order   []string          `json:"order,omitempty"` // where it changed
	Rows    []json.RawMessage `json:"rows,omitempty"`  // that changed
	// Empty says that no row is left, which an Order that is left out does not.
	Empty bool `json:"empty,omitempty"`
}

// since gives what has changed since then, and a channel that is closed at the next change.
func (b *board) since(last uint64) (updates []update, now uint64, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.sections {
		u := update{section: s.name}
		if s.ordered > last {
			u.Order, u.Empty = s.order, len(s.order) == 0
		}
		for _, id := range s.order {
			if r := s.rows[id]; r.changed > last {
				u.Rows = append(u.Rows, r.text)
			}
		}
		if u.Order != nil || u.Rows != nil {
			updates = append(updates, u)
		}
	}
	return updates, b.change, b.changed
}
