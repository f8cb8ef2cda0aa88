package main

import (
	"encoding/json"
	"io"
	"sync"
	"time"
)

// clerkEnv has the orders of a process, as JSON. Where it is set, the binary is one of those that sell.
const clerkEnv = "QUORATE_STORM_CLERK"

// orders are what a process is told at its start.
type orders struct {
	Clerk   int // which of the processes
	Start   int // how often it was started before
	Nodes   []string
	Store   storeConfig
	SKUs    []string
	Workers int
	TTL     time.Duration
	Seed    uint64
}

// An event is what a process tells of a sale: a line of JSON.
type event struct {
	Kind  kind   `json:"k"`
	ID    string `json:"i,omitempty"`
	Token int64  `json:"o,omitempty"`
	Seen  int64  `json:"s,omitempty"` // on refused: the token that the gate has admitted
	Err   string `json:"e,omitempty"`
}

type kind string

const (
	opened    kind = "opened"    // all workers are at work
	begun     kind = "begun"     // has the lease and was admitted
	written   kind = "written"   // the store has confirmed the write
	refused   kind = "refused"   // the gate has refused the write
	unclear   kind = "unclear"   // the write failed in another way; it may be there or not
	shutOut   kind = "shut out"  // the gate has refused the lease before the sale began
	notBegun  kind = "not begun" // the sale did not begin for another reason
	overtaken kind = "overtaken" // the sale began, and failed before it wrote
)

// recorder writes events, at once and through to the pipe: a kill a moment later takes nothing back.
type recorder struct {
	mu sync.Mutex
	to io.Writer
}

func (r *recorder) write(e event) {
	line, err := json.Marshal(e)
	if err != nil {
		panic(err) // strings and numbers: cannot be
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// Where the parent is gone this process is about to end as well.
	_, _ = r.to.Write(append(line, '\n'))
}
