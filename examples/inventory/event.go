package main

import (
	"encoding/json"
	"io"
	"sync"
	"time"
)

// An event is what a replica tells the parent, as one line of JSON on its standard output.
type event struct {
	Kind     kind
	Replica  int
	Addr     string        `json:",omitzero"` // where it serves
	Left     int           `json:",omitzero"` // units, as it has read
	Text     string        `json:",omitzero"`
	Stale    int           `json:",omitzero"` // sales of it that the gate has refused
	Waited   time.Duration `json:",omitzero"` // for database locks, all together
	MostWait int           `json:",omitzero"` // for database locks, at one moment
}

type kind string

const (
	ready   kind = "ready"   // it serves at Addr
	inside  kind = "inside"  // it is in the middle of a sale, and stays there until it is told to go on
	landed  kind = "landed"  // this sale was written
	refused kind = "refused" // this sale was refused
	failed  kind = "failed"  // this sale ended otherwise: Text
	done    kind = "done"    // it serves no more, and this is its count
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
	// Who reads it has gone if this fails, and then this process ends as well.
	_ = r.out.Encode(e)
}
