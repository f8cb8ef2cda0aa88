package leader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/redlock"
)

// A record is what is on file about the newest term: the state of its lease, as JSON. Readers
// ignore fields that they do not know. It outlives the term, for it carries what a leader saved
// for the next.
type record struct {
	// Version is that of the format. Version 1 had no field for it, and none from Phase on.
	Version int `json:"v,omitempty"`
	// Lease is the random part of the lease's owner. It ties the record to one acquisition: one
	// that another holder left behind has another.
	Lease   string            `json:"lease"`
	Leader  string            `json:"leader"`
	Number  redlock.Token     `json:"number"`
	Since   time.Time         `json:"since"`
	Phase   phase             `json:"phase,omitempty"`
	Address string            `json:"address,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	// Heir is whom the leader has named to follow, when its term has ended by Transfer.
	Heir string `json:"heir,omitempty"`
	// State is what a leader saved last, this one or one before.
	State []byte `json:"state,omitempty"`
}

const recordVersion = 2

// maxRecordHead is the room that is left in a lease's state beside the largest state of a term, and
// room for an heir.
const maxRecordHead = redlock.MaxStateSize - MaxStateSize*4/3 - 640

// A phase is how far a term had come when its record was written.
type phase string

const (
	// elected: the lease is won, and nothing else. Whether the function was ever called is not
	// known: the leader may have failed to get the record to a quorum.
	elected phase = "elected"
	// leading: the function has been called. Written afterwards, so wherever it is found it is true.
	leading phase = "leading"
	// ended: the function has returned. As above.
	ended phase = "ended"
)

var errNoRecord = errors.New("what is saved under the lease is no leader's record")

// parseRecord reads a record of any version.
func parseRecord(state []byte) (record, error) {
	var r record
	if err := json.Unmarshal(state, &r); err != nil {
		return record{}, fmt.Errorf("%w: %w", errNoRecord, err)
	}
	if r.Lease == "" || r.Number <= 0 {
		return record{}, errNoRecord
	}
	if r.Version < recordVersion {
		r.Phase = leading // it was written just before, then
	}
	return r, nil
}

// recordOf is what the holder has published, if it has.
func recordOf(status redlock.Status) (r record, ok bool) {
	r, err := parseRecord(status.State)
	return r, err == nil && r.Lease == nonceOf(status.Holder)
}

// term is the term that the record is about, as others see it.
func (r *record) term(name string) Term {
	return Term{
		Name: name, Number: r.Number, Leader: r.Leader, Since: r.Since,
		Address: r.Address, Labels: r.Labels, state: r.State,
	}
}

// file puts a record of the term on file, in the caller's turn.
func (t *tenure) file(ctx context.Context, p phase, state []byte) error {
	text, err := t.record(p, state)
	if err != nil {
		return err
	}
	if p == elected { // nothing that those who watch are told of
		return t.lease.Save(ctx, text)
	}
	return t.lease.Publish(ctx, text)
}

func (t *tenure) record(p phase, state []byte) ([]byte, error) {
	r := record{
		Version: recordVersion, Lease: nonceOf(t.lease.Owner()), Phase: p,
		Leader: t.term.Leader, Number: t.term.Number, Since: t.term.Since,
		Address: t.term.Address, Labels: t.labels, State: state,
	}
	if p == ended {
		r.Heir = t.heir
	}
	return json.Marshal(r)
}

// headSize is how many bytes a record of this candidate's takes at most, without state and heir.
func (e *Elector) headSize() int {
	text, err := json.Marshal(record{
		Version: recordVersion, Lease: strings.Repeat("x", 26), Phase: leading,
		Leader: e.identity, Number: 1<<53 - 1, Since: time.Date(2026, 1, 1, 0, 0, 0, 123456789, time.UTC),
		Address: e.settings.address, Labels: e.settings.labels,
	})
	if err != nil {
		return maxRecordHead + 1 // such a candidate could never publish
	}
	return len(text)
}

// identityOf is the readable part of an owner. A lock that a foreign client holds may have no
// other.
func identityOf(owner string) string {
	if i := strings.LastIndexByte(owner, '/'); i >= 0 {
		return owner[:i]
	}
	return owner
}

// nonceOf is the random part of an owner.
func nonceOf(owner string) string {
	return owner[strings.LastIndexByte(owner, '/')+1:]
}
