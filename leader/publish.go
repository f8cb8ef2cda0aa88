package leader

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/redlock"
)

// A record is what a leader publishes: the state of its lease, as JSON. Readers ignore fields
// that they do not know.
type record struct {
	// Lease is the random part of the lease's owner. It ties the record to one acquisition: one
	// that another holder left behind has another.
	Lease  string        `json:"lease"`
	Leader string        `json:"leader"`
	Number redlock.Token `json:"number"`
	Since  time.Time     `json:"since"`
}

// publish says to a quorum of nodes who leads.
func (t *tenure) publish() error {
	text, err := json.Marshal(record{
		Lease: nonceOf(t.lease.Owner()), Leader: t.term.Leader, Number: t.term.Number, Since: t.term.Since,
	})
	if err == nil {
		err = t.lease.Save(t.ctx, text)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errUnpublished, err)
	}
	return nil
}

// Leader asks the nodes who leads. Any process that has a Locker for the fleet may ask, a
// candidate or not. By the time the answer is read, it may be out of date.
//
// A leader that crashed, or was cut off, is told until its TTL has ended. When the holder of the
// lease has not published its term yet, its function has not been called either; then the Term
// has the identity of the holder's Locker, from the lock itself, and nothing else: Number and
// Since are zero.
//
// Errors: ErrNoLeader when no quorum of nodes has one holder; redlock.ErrNoQuorum when too few
// nodes answer to know.
func (e *Elector) Leader(ctx context.Context) (Term, error) {
	status, err := e.locker.Inspect(ctx, e.name)
	if err != nil {
		return Term{}, fmt.Errorf("leader: who leads %q: %w", e.name, err)
	}
	if status.Holder == "" {
		return Term{}, fmt.Errorf("leader: who leads %q: %w", e.name, ErrNoLeader)
	}
	r, ok := recordOf(status)
	if !ok {
		return Term{Name: e.name, Leader: identityOf(status.Holder)}, nil
	}
	return Term{Name: e.name, Number: r.Number, Leader: r.Leader, Since: r.Since}, nil
}

// recordOf is what the holder has published, if it has.
func recordOf(status redlock.Status) (r record, ok bool) {
	err := json.Unmarshal(status.State, &r)
	return r, err == nil && r.Lease == nonceOf(status.Holder)
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
