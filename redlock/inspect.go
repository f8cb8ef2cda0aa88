package redlock

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/quorum"
)

// A Status is what the nodes know of a name at one moment. It is for people and monitoring: by
// the time it is read, it may be out of date.
type Status struct {
	Name string
	// Holder is the owner whose lock a quorum of nodes has, or "" when there is none.
	Holder string
	// Token is the fencing token of the last acquisition that any node has seen, or a little
	// more (see the package documentation, "Tokens").
	Token Token
	// TTL is how long the holder's locks last at a quorum, unless they are extended.
	TTL time.Duration
	// State is the newest saved state that a node has; nil if there is none.
	State []byte
	Nodes []NodeStatus
}

// A NodeStatus is what one node knows of a name.
type NodeStatus struct {
	Node       string        // address
	Holder     string        // owner in the lock key, or ""
	TTL        time.Duration // of the lock key; 0 if it has none
	Fence      Token         // 0 if there is none
	Quarantine time.Duration // > 0: the node restarted lately and does not count for this long
	Err        error         // why the node told nothing
}

// Inspect asks all nodes what they know of a name, and changes nothing. It returns an error
// that wraps ErrNoQuorum when too few of them answer; the Status is filled in all the same.
func (l *Locker) Inspect(ctx context.Context, name string) (Status, error) {
	status := Status{Name: name}
	k, err := keysOf(l.settings.keyPrefix, name)
	if err != nil {
		return status, fmt.Errorf("redlock: inspect: %w", err)
	}
	ctx, end, err := l.begin(ctx, "inspect", name)
	if err != nil {
		return status, err
	}
	defer end()
	if err := l.fleet.ready(ctx); err != nil {
		return status, fmt.Errorf("redlock: inspect %q: %w", name, err)
	}
	r, err := l.hear(ctx, inspectStep(k))
	if err != nil {
		return status, fmt.Errorf("redlock: inspect %q: %w", name, err)
	}
	locks := map[string][]time.Duration{}
	answered := 0
	var newest version
	for i := range r.answers {
		a := &r.answers[i]
		n := NodeStatus{Node: l.fleet.nodes[i].name, Holder: a.holder, TTL: a.left, Fence: a.fence, Quarantine: a.quarantine, Err: a.err}
		status.Nodes = append(status.Nodes, n)
		if a.verdict == failed {
			continue
		}
		answered++
		status.Token = max(status.Token, a.fence)
		if newest.before(a.state) {
			newest = a.state
		}
		if a.holder != "" {
			locks[a.holder] = append(locks[a.holder], a.left)
		}
	}
	status.State = newest.value
	need := quorum.Size(len(r.answers))
	for holder, left := range locks {
		if len(left) >= need {
			slices.Sort(left)
			status.Holder, status.TTL = holder, left[len(left)-need]
		}
	}
	if answered < need {
		return status, r.failure("inspect", name, l.fleet.nodes)
	}
	return status, nil
}

// hear puts a step to all nodes and waits until each has answered, or failed.
func (l *Locker) hear(ctx context.Context, s step) (result, error) {
	answers := make(chan struct{}, len(l.fleet.nodes))
	b := l.fleet.ask(s, func(int, *answer) { answers <- struct{}{} }, nil)
	for range l.fleet.nodes {
		select {
		case <-answers:
		case <-ctx.Done():
			return result{}, context.Cause(ctx)
		}
	}
	return b.result(), nil
}
