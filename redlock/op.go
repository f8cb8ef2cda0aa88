package redlock

import (
	"errors"
	"strconv"
	"time"
)

// A nodeSet is a set of nodes by their index. Nodes beyond its width are never in it.
type nodeSet uint64

func (s nodeSet) has(node int) bool         { return node < 64 && s&(1<<node) != 0 }
func (s nodeSet) and(other nodeSet) nodeSet { return s & other }

// neverSent are the nodes to which a step was not even sent. They need no release.
func neverSent(r *result) nodeSet {
	var s nodeSet
	for i := range r.answers {
		err := r.answers[i].err
		if i < 64 && (errors.Is(err, ErrNodeSuspect) || errors.Is(err, ErrNodeBusy)) {
			s |= 1 << i
		}
	}
	return s
}

func (t Token) String() string { return strconv.FormatInt(int64(t), 10) }

func ms(d time.Duration) int64 { return d.Milliseconds() }

// The functions below make one step's op for each node. The arguments are as the scripts in
// lua/ document them.

func acquireOp(k keys, owner string, token, top Token, s *settings, ttl time.Duration) func(int) *op {
	both, args := []string{k.lock, k.fence}, []any{owner, int64(token), ms(ttl), ms(s.fenceTTL), int64(top)}
	return func(int) *op { return &op{script: acquireScript, keys: both, args: args} }
}

func extendOp(k keys, owner string, number Token, s *settings, ttl time.Duration) func(int) *op {
	both, args := []string{k.lock, k.fence}, []any{owner, int64(number), ms(ttl), ms(s.fenceTTL)}
	return func(int) *op { return &op{script: extendScript, keys: both, args: args} }
}

// An ending is what a release has to know of the acquisition that it ends.
type ending struct {
	owner  string
	number Token   // fence number
	grown  bool    // a node may hold the lock with a fence below the number: it was proposed, or raised, later
	held   bool    // it was a lease, for which others may be waiting
	news   string  // channel to tell of it as well; "": none
	skip   nodeSet // nodes that were never sent anything
}

func releaseOp(k keys, e ending, s *settings) func(int) *op {
	both, args := []string{k.lock, k.fence}, []any{e.owner, int64(e.number), ms(s.fenceTTL), flag(e.grown), flag(e.held)}
	if e.news != "" {
		args = append(args, e.news)
	}
	return func(node int) *op {
		if e.skip.has(node) {
			return nil
		}
		return &op{script: releaseScript, keys: both, args: args}
	}
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// saveOp tells of the save on the channel news, unless that is "".
func saveOp(k keys, owner string, v version, news string, s *settings) func(int) *op {
	both := []string{k.lock, k.fence}
	args := []any{owner, int64(v.token), v.sequence, v.value, ms(s.fenceTTL)}
	if news != "" {
		args = append(args, news)
	}
	return func(int) *op { return &op{script: saveScript, keys: both, args: args} }
}

func inspectOp(k keys) func(int) *op {
	both := []string{k.lock, k.fence}
	return func(int) *op { return &op{script: inspectScript, keys: both} }
}
