package main

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/quorate/quorate/redlock"
)

// An event is what a replica tells the parent, as one line of JSON on its standard output.
type event struct {
	Kind    kind
	Replica int
	At      time.Time
	Token   redlock.Token `json:",omitzero"` // of the term or the sale
	Until   time.Time     `json:",omitzero"` // how long the term may be led
	Tick    time.Time     `json:",omitzero"`
	Product string        `json:",omitzero"`
	Unit    int           `json:",omitzero"`
	Text    string        `json:",omitzero"`
}

type kind string

const (
	ready   kind = "ready"   // the replica's scheduler is about to run
	began   kind = "began"   // it leads term Token, for now until Until
	trusted kind = "trusted" // it leads on, until Until
	ended   kind = "ended"   // it has stopped leading
	ran     kind = "ran"     // it has begun to run Tick
	inside  kind = "inside"  // it is in the middle of a sale, and stays there, as it was asked to
	sold    kind = "sold"    // the store has admitted the sale
	refused kind = "refused" // the store has refused the sale as stale
	trouble kind = "trouble" // something else went wrong: Text
)

// A reporter writes events, each in one piece.
type reporter struct {
	replica int
	mu      sync.Mutex
	out     *json.Encoder
}

func newReporter(replica int, out io.Writer) *reporter {
	return &reporter{replica: replica, out: json.NewEncoder(out)}
}

func (r *reporter) report(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Replica = r.replica
	if e.At.IsZero() {
		e.At = time.Now()
	}
	// Who reads it has gone if this fails, and then this process ends as well.
	_ = r.out.Encode(e)
}
