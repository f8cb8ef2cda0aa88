package leader

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/redlock"
)

// A Term is one leadership. The leading function is given its own; Elector.Leader and
// Elector.Watch tell of anybody's.
type Term struct {
	// Name is that of the election.
	Name string
	// Number is the fencing token of the term: higher than that of every term before. Pass it
	// to the resources that the leader writes to. Terms are not numbered consecutively. It is 0
	// in what Elector.Leader returns while the holder has not published its term yet, and in what
	// Elector.Watch yields when nobody leads.
	Number redlock.Token
	// Leader is the identity of who leads: see WithIdentity.
	Leader string
	// Since is when the term began, by the leader's wall clock, in UTC. Zero while it is not
	// published.
	Since time.Time
	// Address is where the leader is reached, if it says so: see WithAddress.
	Address string
	// Labels are what else the leader says of itself: see WithLabels. Do not change them.
	Labels map[string]string

	state  []byte  // as it was read; of a term of another
	tenure *tenure // of a term of one's own
}

// State is what was last saved under this election, in this term or by a leader before, however
// many terms ago; nil if that is nothing. It is the newest that any leader was told is saved. Of a
// term of another it is what was known of it when that was asked for.
//
// It lives as long as the Locker's fences: redlock.WithFenceTTL, 24 hours by default, counted from the
// election's last use. Leaders of a version without State do not pass it on.
func (t Term) State() []byte {
	if t.tenure != nil {
		return t.tenure.savedState()
	}
	return bytes.Clone(t.state)
}

// Save hands b over to the next leaders: at most MaxStateSize bytes, in place of what was saved
// before. When it returns nil a quorum of nodes has it and no leader before this one can change it any
// more. Only the leading function can save, in its own term, until its lease ends: also while it winds
// down.
//
// Errors: redlock.ErrStateTooLarge; ErrNotLeader for a term that is not one's own; those of
// redlock.Lease.Save, after which, as when ctx ends first, the next leader may find either value.
func (t Term) Save(ctx context.Context, b []byte) error {
	switch {
	case t.tenure == nil:
		return fmt.Errorf("leader: save for %q: %w; only the term that the leading function is given can save", t.Name, ErrNotLeader)
	case len(b) > MaxStateSize:
		return fmt.Errorf("leader: save for %q: %w: %d bytes, the limit is %d; store the data elsewhere and save a reference to it",
			t.Name, redlock.ErrStateTooLarge, len(b), MaxStateSize)
	}
	if err := t.tenure.save(ctx, bytes.Clone(b)); err != nil {
		return fmt.Errorf("leader: save for %q: %w", t.Name, err)
	}
	return nil
}

// savedState is the state as it was last known to be at a quorum.
func (t *tenure) savedState() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Clone(t.state)
}

// save puts a new state on file.
func (t *tenure) save(ctx context.Context, state []byte) error {
	return t.inTurn(ctx, func() error {
		if err := t.file(ctx, leading, state); err != nil {
			return err
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.state = state
		return nil
	})
}

// announce puts on file how far the term has come, with the state that it has by then.
func (t *tenure) announce(ctx context.Context, p phase) error {
	return t.inTurn(ctx, func() error { return t.file(ctx, p, t.savedState()) })
}

// inTurn lets those who write records take turns, so that none overtakes another with an older state.
func (t *tenure) inTurn(ctx context.Context, write func() error) error {
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-t.turn }()
	if t.buried {
		return ErrNotLeader // a goroutine that the function has left behind
	}
	return write()
}

// bury puts the last record of the term on file. It waits for the nodes only for an heir's sake: the
// lanes keep the order, so the release that follows finds the record there.
func (t *tenure) bury(ctx context.Context) error {
	t.turn <- struct{}{} // whoever has it waits for nodes, which takes a node timeout at most
	defer func() { <-t.turn }()
	t.buried = true
	if t.heir == "" {
		now, cancel := context.WithCancel(ctx)
		cancel()
		ctx = now
	}
	return t.file(ctx, ended, t.savedState())
}
