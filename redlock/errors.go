package redlock

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Conditions that a caller may want to tell apart with errors.Is. The errors that are returned
// wrap them and say which name, which node and what to do.
var (
	// ErrTaken: another client holds the name.
	ErrTaken = errors.New("taken by another")
	// ErrNoQuorum: too few nodes could be asked.
	ErrNoQuorum = errors.New("no quorum of nodes can be reached")
	// ErrQuarantined: a quorum answered, but too many of its nodes restarted less than the
	// maximum TTL ago and may have forgotten a lease.
	ErrQuarantined = errors.New("too many nodes are in quarantine after a restart")
	// ErrNoValidity: a quorum accepted, but so late that too little of the TTL was left.
	ErrNoValidity = errors.New("no validity left")
	// ErrStaleToken: a quorum has seen a token that is higher than the one of this lease.
	ErrStaleToken = errors.New("stale token")
	// ErrLeaseLost: the nodes say that the lease is no longer ours, before its time was up.
	ErrLeaseLost = errors.New("lease lost")
	// ErrLeaseExpired: the validity ran out and no extension came through in time.
	ErrLeaseExpired = errors.New("lease expired")
	// ErrExtensionLimit: the validity ran out after the last extension that was allowed.
	ErrExtensionLimit = errors.New("extension limit reached")
	// ErrReleased: the lease was released by its holder.
	ErrReleased = errors.New("lease released")
	// ErrClosed: the Locker is closed.
	ErrClosed = errors.New("locker closed")

	// ErrInvalidName: the name of the resource cannot be used.
	ErrInvalidName = errors.New("invalid name")
	// ErrInvalidOption: a setting, or a combination of settings, makes no sense.
	ErrInvalidOption = errors.New("invalid option")
	// ErrTTLTooLong: the TTL is above the fleet's maximum, on which the restart rule relies.
	ErrTTLTooLong = errors.New("TTL too long")
	// ErrTTLTooShort: the TTL is below MinTTL.
	ErrTTLTooShort = errors.New("TTL too short")
	// ErrStateTooLarge: the state is larger than MaxStateSize.
	ErrStateTooLarge = errors.New("state too large")
	// ErrNoNodes: New was given no nodes.
	ErrNoNodes = errors.New("no nodes")
	// ErrSameServer: two of the nodes are one server, which would make the quorum a fake.
	ErrSameServer = errors.New("two nodes are the same server")
	// ErrTokensExhausted: no token above the fence of a node is left.
	ErrTokensExhausted = errors.New("tokens exhausted")

	// ErrReplica: a node is a replica. Nodes are independent masters.
	ErrReplica = errors.New("node is a replica")
	// ErrNodeTimeout: a node did not answer within the node timeout.
	ErrNodeTimeout = errors.New("node did not answer in time")
	// ErrNodeSuspect: a node did not answer earlier and is left alone until a probe succeeds.
	ErrNodeSuspect = errors.New("node is suspect")
	// ErrNodeBusy: too many requests wait for a node.
	ErrNodeBusy = errors.New("node's queue is full")
)

// A NodeError is what one node said, or why it said nothing.
type NodeError struct {
	Node string // address
	Err  error
}

func (e *NodeError) Error() string { return e.Node + ": " + e.Err.Error() }

func (e *NodeError) Unwrap() error { return e.Err }

// A QuorumError says why a step did not find a quorum: it wraps one of ErrTaken, ErrNoQuorum,
// ErrQuarantined, ErrNoValidity, ErrStaleToken and ErrLeaseLost, and has an error for each node
// that did not vote for the step.
type QuorumError struct {
	Op     string // "acquire", "extend", "release", "save", "inspect", "break" or "list"
	Name   string // of the resource
	Err    error  // the condition, one of the above
	Votes  int    // nodes that voted for it and count
	Quorum int    // votes needed
	Holder string // who holds the name, where a node told; for ErrTaken
	// Wait is how long it takes, at most, until waiting alone may help: the holder's remaining
	// TTL or the nodes' remaining quarantine. Zero when it is not known.
	Wait  time.Duration
	Nodes []*NodeError
}

func (e *QuorumError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "redlock: %s %q: %v", e.Op, e.Name, e.Err)
	switch {
	case errors.Is(e.Err, ErrTaken):
		if e.Holder != "" {
			fmt.Fprintf(&b, ": held by %s", shown(e.Holder))
		}
		if e.Wait > 0 {
			fmt.Fprintf(&b, ", expires in %v at the latest unless extended", e.Wait.Round(time.Millisecond))
		}
	case errors.Is(e.Err, ErrQuarantined):
		fmt.Fprintf(&b, "; they count again in %v", e.Wait.Round(time.Millisecond))
	case errors.Is(e.Err, ErrNoQuorum) && e.denied():
		b.WriteString("; give the user that the nodes know us by the rights of docs/acl.md")
	case errors.Is(e.Err, ErrNoQuorum) && e.isStranger():
		b.WriteString("; give the clients of the nodes the right user and password")
	case errors.Is(e.Err, ErrNoQuorum):
		b.WriteString("; check that the nodes are up and reachable from here")
	case errors.Is(e.Err, ErrNoValidity):
		b.WriteString(": the nodes answered too late; use a longer TTL or find out why they are slow")
	case errors.Is(e.Err, ErrStaleToken), errors.Is(e.Err, ErrLeaseLost):
		b.WriteString("; stop the work that it covered")
	}
	fmt.Fprintf(&b, " (%d of %d votes needed", e.Votes, e.Quorum)
	for _, n := range e.Nodes {
		fmt.Fprintf(&b, "; %v", n)
	}
	b.WriteString(")")
	return b.String()
}

// denied reports whether a node's access rules stood in the way, of the step or in its script.
func (e *QuorumError) denied() bool {
	return slices.ContainsFunc(e.Nodes, func(n *NodeError) bool {
		return redis.HasErrorPrefix(n.Err, "NOPERM") ||
			redis.HasErrorPrefix(n.Err, "ACL failure in script") || // from 7.2 on
			redis.HasErrorPrefix(n.Err, "The user executing the script can't")
	})
}

// isStranger reports whether a node does not know us.
func (e *QuorumError) isStranger() bool {
	return slices.ContainsFunc(e.Nodes, func(n *NodeError) bool {
		return redis.HasErrorPrefix(n.Err, "NOAUTH") || redis.HasErrorPrefix(n.Err, "WRONGPASS")
	})
}

// shown is an owner as it is written into messages: on one line, and no longer than any of ours.
// A foreign client may have put anything into a lock.
func shown(owner string) string {
	if len(owner) > maxOwner {
		owner = owner[:maxOwner] + "…"
	}
	if quoted := strconv.Quote(owner); quoted != `"`+owner+`"` {
		return quoted
	}
	return owner
}

// Unwrap gives the condition and what the nodes said.
func (e *QuorumError) Unwrap() []error {
	errs := make([]error, 0, len(e.Nodes)+1)
	errs = append(errs, e.Err)
	for _, n := range e.Nodes {
		errs = append(errs, n)
	}
	return errs
}

// An AcquireError says why waiting for a name ended without a lease: Err is the reason (the
// context's error, ErrClosed, or the last attempt's error when the attempts were used up), Last
// is what the last attempt found. errors.Is and errors.As see both.
type AcquireError struct {
	Name     string
	Attempts int
	Waited   time.Duration
	Err      error
	Last     error
}

func (e *AcquireError) Error() string {
	s := fmt.Sprintf("redlock: acquire %q: gave up after %d attempts in %v: %v", e.Name, e.Attempts, e.Waited.Round(time.Millisecond), e.Err)
	if e.Last != nil {
		s += "; last: " + strings.TrimPrefix(e.Last.Error(), "redlock: ")
	}
	return s
}

// Unwrap gives the reason and what the last attempt found.
func (e *AcquireError) Unwrap() []error {
	if e.Last == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Last}
}

// A LeaseError says how a lease ended: it wraps ErrLeaseExpired, ErrLeaseLost,
// ErrExtensionLimit, ErrReleased or ErrClosed. It is the cause of the lease's context.
type LeaseError struct {
	Name  string
	Token Token
	Err   error // the condition
	Last  error // the last failed extension, if any
}

func (e *LeaseError) Error() string {
	s := fmt.Sprintf("redlock: lease of %q with token %d: %v", e.Name, e.Token, e.Err)
	switch {
	case errors.Is(e.Err, ErrLeaseExpired), errors.Is(e.Err, ErrLeaseLost):
		s += "; another may hold it now, stop the work that it covered"
	case errors.Is(e.Err, ErrExtensionLimit):
		s += "; raise WithMaxExtensions, or cut the work into smaller pieces"
	case errors.Is(e.Err, ErrReleased):
		s += "; acquire the name again to go on"
	case errors.Is(e.Err, ErrClosed):
		s += "; its key runs out by itself"
	}
	if e.Last != nil {
		s += " (last extension: " + strings.TrimPrefix(e.Last.Error(), "redlock: ") + ")"
	}
	return s
}

// Unwrap gives the condition and the last failed extension.
func (e *LeaseError) Unwrap() []error {
	if e.Last == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Last}
}
