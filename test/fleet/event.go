package main

// An event is what a client reports: one line of JSON on the pipe to the harness.
type event struct {
	Kind    kind   `json:"k"`
	At      int64  `json:"t"`
	Token   int64  `json:"o,omitempty"`
	Until   int64  `json:"u,omitempty"` // the end of the validity, as the leader was told
	Job     string `json:"j,omitempty"`
	Tick    int64  `json:"i,omitempty"` // in seconds since the Unix epoch
	Attempt int    `json:"a,omitempty"`
	N       int    `json:"n,omitempty"` // on asked: the number of the command
	Err     string `json:"e,omitempty"`
}

type kind string

const (
	ready kind = "ready" // the process works; Tick is the second by its wall clock
	asked kind = "asked" // it has been told by the nodes who leads

	resigning kind = "resigning" // is about to resign
	led       kind = "led"       // the leading function was called
	held      kind = "held"      // a later end of the validity
	ended     kind = "ended"     // the leading function saw its context end
	pausing   kind = "pausing"   // found its term valid, and is about to be stopped before it writes
	wrote     kind = "wrote"     // a write was admitted
	refused   kind = "refused"   // a write was refused as stale

	started   kind = "started"   // a run has begun
	completed kind = "completed" // a run has ended, and, where there is a gate, that was admitted
	again     kind = "again"     // the same, of a tick that had been completed
	cut       kind = "cut"       // a run has not been completed

	interrupted kind = "interrupted" // the scheduler found a tick that was claimed and not completed
	missed      kind = "missed"      // the scheduler gave a tick up
)

// A command is what the harness tells a client: one line of JSON on its standard input.
type command struct {
	Op string `json:"op"` // ask, resign, pause or stop
	N  int    `json:"n,omitempty"`
	// Token is the term in which to pause.
	Token int64 `json:"o,omitempty"`
}
