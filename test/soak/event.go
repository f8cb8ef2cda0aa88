package main

// An event is what a client reports: one line of JSON on the pipe to the harness. What it is
// about has an id, which is unique within the process.
type event struct {
	Kind  kind   `json:"k"`
	At    int64  `json:"t"`
	ID    uint64 `json:"i,omitempty"`
	Load  string `json:"l,omitempty"` // on asked: which load
	Name  string `json:"n,omitempty"` // on asked: of the lock, resource, election or job
	Token int64  `json:"o,omitempty"`
	Until int64  `json:"u,omitempty"` // the end of the validity, as the holder was told; 0: it was told none
	Start int64  `json:"s,omitempty"` // on leading: between Start and At, IsLeader said yes
	Value string `json:"v,omitempty"` // on held: the state; on saved: what; on run: the tick
	Err   string `json:"e,omitempty"` // the class of an error
}

type kind string

const (
	ready    kind = "ready"    // the process runs
	asked    kind = "asked"    // is about to acquire
	refused  kind = "refused"  // did not acquire
	held     kind = "held"     // has acquired
	extended kind = "extended" // a later end of the validity, by an extension or as it was seen
	ended    kind = "ended"    // does not rely on the lease any more: about to release, or saw its end
	released kind = "released" // the release has returned
	saving   kind = "saving"   // is about to save
	saved    kind = "saved"    // the save has returned
	wrote    kind = "wrote"    // a write to the resource has returned
	leading  kind = "leading"  // IsLeader said yes
	run      kind = "run"      // the run of a tick has begun
	cycled   kind = "cycled"   // Until - At is how long a cycle took
	stopped  kind = "stopped"  // all that was asked is done and the library is closed
)

// A command is what the harness tells a client: one line of JSON on its standard input.
type command struct {
	Op   string `json:"op"`             // clock, careful, cycles or stop
	Skew int64  `json:"skew,omitempty"` // clock: the wall clock is so many nanoseconds ahead
	PPM  int64  `json:"ppm,omitempty"`  // clock: elapsed time runs so many parts per million fast
	N    int    `json:"n,omitempty"`    // cycles: how many
}
