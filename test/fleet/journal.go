package main

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// journal is all that was reported, in the order in which it came in.
type journal struct {
	mu      sync.Mutex
	entries []told
	fresh   chan struct{} // closed when there is something new
}

// told is an event and who reported it.
type told struct {
	event
	by *process
}

func newJournal() *journal { return &journal{fresh: make(chan struct{})} }

func (j *journal) add(by *process, e event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, told{e, by})
	close(j.fresh)
	j.fresh = make(chan struct{})
}

// news is closed at the next event.
func (j *journal) news() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.fresh
}

// since is what was reported from the nth event on.
func (j *journal) since(n int) []told {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.entries[n:len(j.entries):len(j.entries)]
}

func (j *journal) len() int { return len(j.since(0)) }

// first is the first event from the nth on for which is says yes.
func (j *journal) first(n int, is func(told) bool) (told, bool) {
	for _, t := range j.since(n) {
		if is(t) {
			return t, true
		}
	}
	return told{}, false
}

// print writes all events, a line each: by whom, and what.
func (j *journal) print(to io.Writer) error {
	for _, t := range j.since(0) {
		text, err := json.Marshal(t.event)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(to, "%s %s\n", t.by.config.identity(), text); err != nil {
			return err
		}
	}
	return nil
}
