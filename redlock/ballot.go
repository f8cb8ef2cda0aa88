package redlock

import (
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/quorum"
)

// A ballot counts the answers of all nodes to one step.
type ballot struct {
	each    func(node int, a *answer)
	decided func(*ballot)

	mu      sync.Mutex
	answers []answer // silent until it is there
	yes, no int
	outcome quorum.Outcome
}

func (b *ballot) record(node int, a answer) {
	b.mu.Lock()
	mine := &b.answers[node] // written here only
	*mine = a
	if mine.yes() {
		b.yes++
	} else {
		b.no++
	}
	first := false
	if b.outcome == quorum.Pending {
		b.outcome = quorum.Decide(len(b.answers), b.yes, b.no)
		first = b.outcome != quorum.Pending
	}
	b.mu.Unlock()
	if b.each != nil {
		b.each(node, mine)
	}
	if first && b.decided != nil {
		b.decided(b)
	}
}

// A result is what a ballot knew at one moment.
type result struct {
	answers []answer
	won     bool
	votes   int
}

func (b *ballot) result() result {
	b.mu.Lock()
	defer b.mu.Unlock()
	return result{answers: slices.Clone(b.answers), won: b.outcome == quorum.Won, votes: b.yes}
}

func (r *result) count(v verdict) int {
	n := 0
	for i := range r.answers {
		if r.answers[i].verdict == v {
			n++
		}
	}
	return n
}

// fence is the highest fence that a node answered with and that leaves a token above it, and
// behind how many nodes are: those that may accept the next proposal.
func (r *result) fence() (high Token, behind int) {
	for i := range r.answers {
		a := &r.answers[i]
		if a.verdict == stale && a.fence < maxToken {
			high = max(high, a.fence)
			behind++
		}
	}
	return high, behind
}

// exhausted is an error if so many nodes have a fence above which there is no token, and so can
// never accept, that there is no quorum without them.
func (r *result) exhausted() error {
	spare := len(r.answers) - quorum.Size(len(r.answers))
	for i := range r.answers {
		if a := &r.answers[i]; a.verdict == stale && a.fence >= maxToken {
			if spare--; spare < 0 {
				return errNoTokenAbove(a.fence)
			}
		}
	}
	return nil
}

// state is the newest state among the votes that count, and whether all of them agree on it.
func (r *result) state() (newest version, agreed bool) {
	agreed = true
	first := true
	for i := range r.answers {
		a := &r.answers[i]
		if !a.yes() {
			continue
		}
		if !first && !a.state.same(newest) {
			agreed = false
		}
		if first || newest.before(a.state) {
			newest = a.state
		}
		first = false
	}
	return newest, agreed
}

// failure says why a step found no quorum.
func (r *result) failure(op, name string, nodes []*node) *QuorumError {
	need := quorum.Size(len(r.answers))
	e := &QuorumError{Op: op, Name: name, Votes: r.votes, Quorum: need}
	var free []time.Duration // for each node that says no, when it may say yes, if that is known
	quarantined := 0
	for i := range r.answers {
		a := &r.answers[i]
		if err := a.refusal(); err != nil {
			e.Nodes = append(e.Nodes, &NodeError{Node: nodes[i].name, Err: err})
		}
		switch {
		case a.quarantine > 0 && (a.verdict == accepted || a.verdict == healed):
			quarantined++
			free = append(free, a.quarantine)
		case a.verdict == taken:
			if e.Holder == "" {
				e.Holder = a.holder
			}
			if a.left > 0 {
				free = append(free, a.left)
			}
		}
	}
	e.Err = r.reason(op, quarantined)
	slices.Sort(free)
	if missing := need - r.votes; missing > 0 && missing <= len(free) {
		e.Wait = free[missing-1]
	}
	return e
}

// reason names the condition that kept a step from its quorum: the one without which the step
// could have found it.
func (r *result) reason(op string, quarantined int) error {
	spare := len(r.answers) - quorum.Size(len(r.answers)) // nodes that a step can do without
	refused, out := r.count(taken)+r.count(stale), r.count(failed)
	// What a node in quarantine says of others was never part of a quorum since it restarted: its
	// refusal says no more of who holds the name than its vote would.
	proof := 0
	for i := range r.answers {
		if a := &r.answers[i]; a.quarantine == 0 && (a.verdict == taken || a.verdict == stale) {
			proof++
		}
	}
	switch {
	case op == "extend" && proof > spare:
		return ErrLeaseLost
	case op == "save" && proof > spare:
		return ErrStaleToken
	case op == "acquire" && refused > 0 && out+quarantined <= spare:
		return ErrTaken
	case quarantined > 0 && out <= spare:
		return ErrQuarantined
	}
	return ErrNoQuorum
}
