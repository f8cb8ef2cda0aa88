package scheduler

import (
	"slices"
	"time"

	"github.com/quorate/quorate/redlock"
)

const (
	// registerVersion is raised when an older reader would draw a wrong conclusion.
	registerVersion = 2
	// maxOpen is how many runs of one job go on at the same time in the fleet.
	maxOpen = 16
	// maxLedger is how many entries the ledger has at most; fewer where they are long.
	maxLedger = 20
)

// A register is the state of a job's lease: what the fleet knows of the job. Times are Unix
// milliseconds. Who writes it holds the lease.
type register struct {
	Version int `json:"v"`
	// Spec is the fingerprint of the spec that the last writer knew, and Since when the first of
	// those writers began: ticks before that are nobody's.
	Spec  string `json:"spec"`
	Since int64  `json:"since"`

	Settled ticks `json:"settled"`           // ticks that were started, or will not be
	Aged    int64 `json:"aged,omitempty"`    // up to here, ticks that nobody settled were reported
	Queued  int64 `json:"queued,omitempty"`  // a tick that waits for a run to end
	Dropped int64 `json:"dropped,omitempty"` // up to here, ticks that daylight saving left out were reported

	Open []open `json:"open,omitempty"` // runs that were started, and not completed

	// Triggers and Backfills count the requests that were dealt with; see control. Filled is the
	// last tick of the backfill that is under way.
	Triggers  int64 `json:"triggers,omitempty"`
	Backfills int64 `json:"backfills,omitempty"`
	Filled    int64 `json:"filled,omitempty"`

	Ledger []entry `json:"ledger,omitempty"` // what became of the last ticks, oldest first
}

// An open is a run that was started, and not completed as far as the register knows.
type open struct {
	Kind    Kind          `json:"kind,omitempty"` // "" is Scheduled
	Tick    int64         `json:"tick"`
	Request int64         `json:"request,omitempty"` // the trigger's or backfill's number
	Attempt int           `json:"attempt"`
	By      string        `json:"by"`
	Token   redlock.Token `json:"token"` // of the lease that it was claimed with
	Begun   int64         `json:"begun"`
	Own     bool          `json:"own,omitempty"`   // it has a lease of its own, and not the job's
	Steps   []step        `json:"steps,omitempty"` // completed
}

// An entry is a line of the ledger: a run, or ticks that were not run.
type entry struct {
	Kind    Kind          `json:"k,omitempty"`
	Tick    int64         `json:"t"`
	Ticks   int           `json:"n,omitempty"` // 0 is 1
	Outcome Outcome       `json:"o"`
	Reason  Reason        `json:"r,omitempty"`
	By      string        `json:"by,omitempty"`
	Token   redlock.Token `json:"f,omitempty"`
	Attempt int           `json:"a,omitempty"`
	Begun   int64         `json:"b,omitempty"`
	Ended   int64         `json:"e,omitempty"`
	Err     string        `json:"err,omitempty"`
}

// same reports whether two are the same run of the same tick, or of the same request.
func (o *open) same(p *open) bool {
	return o.Kind == p.Kind && o.Tick == p.Tick && o.Request == p.Request
}

// entry is the line that the ledger gets of a run.
func (o *open) entry(outcome Outcome, why Reason, ended time.Time, err error) entry {
	e := entry{Kind: o.Kind, Tick: o.Tick, Outcome: outcome, Reason: why, By: o.By, Token: o.Token, Attempt: o.Attempt, Begun: o.Begun}
	if !ended.IsZero() {
		e.Ended = ended.UnixMilli()
	}
	if err != nil {
		e.Err = brief(err.Error())
	}
	return e
}

// begin puts a run into the register, in place of an earlier attempt at it.
func (r *register) begin(run open) {
	r.end(&run)
	r.Open = append(slices.Clone(r.Open), run)
}

// end takes a run out of the register, and reports whether it was there.
func (r *register) end(run *open) bool {
	n := len(r.Open)
	r.Open = slices.DeleteFunc(slices.Clone(r.Open), func(o open) bool { return o.same(run) })
	return len(r.Open) < n
}

// find gives the run that is open, if it is.
func (r *register) find(run *open) *open {
	if i := slices.IndexFunc(r.Open, func(o open) bool { return o.same(run) }); i >= 0 {
		return &r.Open[i]
	}
	return nil
}

// note adds a line to the ledger.
func (r *register) note(e entry) {
	if n := len(r.Ledger); n >= maxLedger {
		r.Ledger = r.Ledger[n-maxLedger+1:]
	}
	r.Ledger = append(slices.Clone(r.Ledger), e)
}

func readRegister(state []byte) (register, error) {
	var r register
	if state == nil {
		return r, nil
	}
	if err := decode(state, &r); err != nil {
		return r, err
	}
	return r, checkVersion(r.Version, registerVersion)
}

// encode gives the state to save. The ledger gives way to what is needed.
func (r *register) encode() []byte {
	r.Version = registerVersion
	for out := *r; ; out.Ledger = out.Ledger[1:] {
		b := encode(&out)
		if len(b) <= redlock.MaxStateSize || len(out.Ledger) == 0 {
			return b
		}
	}
}

// written is about when the register was written last, by the clock of whoever did.
func (r *register) written() time.Time {
	ms := r.Since
	for _, o := range r.Open {
		ms = max(ms, o.Begun)
	}
	for _, e := range r.Ledger {
		ms = max(ms, e.Begun, e.Ended)
	}
	return time.UnixMilli(ms)
}

// clone gives a copy that shares nothing with the original which a change of either would show.
func (r *register) clone() register {
	c := *r
	c.Settled = r.Settled.clone()
	c.Open = slices.Clone(r.Open)
	c.Ledger = slices.Clone(r.Ledger)
	return c
}

// maxError is how much of an error the ledger keeps, in bytes.
const maxError = 200

// brief shortens a text for the ledger, at a rune.
func brief(s string) string {
	if len(s) <= maxError {
		return s
	}
	cut := maxError
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + "…"
}
