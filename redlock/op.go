package redlock

import (
	"errors"
	"slices"
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

// A step is what all nodes are asked to do. It is not changed once it is made.
type step struct {
	script  *script
	command []any // as it is sent: EVALSHA, the script's name, the number of keys, keys and arguments
	skip    nodeSet
}

const (
	commandScript   = 1 // place of the script in the command
	commandFirstKey = 3
)

func newStep(s *script, k keys, args ...any) step {
	command := make([]any, 0, commandFirstKey+2+len(args))
	return step{script: s, command: append(append(command, evalSHA, s.sha, 2, k.lock, k.fence), args...)}
}

// key is the i-th key of the step.
func (s *step) key(i int) string { return s.command[commandFirstKey+i].(string) }

// by is the same step by another script that takes the same arguments.
func (s *step) by(other *script) step {
	command := slices.Clone(s.command)
	command[commandScript] = other.sha
	return step{script: other, command: command, skip: s.skip}
}

// The functions below make steps. The arguments are as the scripts in lua/ document them.

func acquireStep(k keys, owner string, token, top Token, s *settings, ttl time.Duration, kept string) step {
	return newStep(acquireScript, k, owner, int64(token), ms(ttl), ms(s.fenceTTL), int64(top), kept)
}

func extendStep(k keys, owner string, number Token, s *settings, ttl time.Duration) step {
	return newStep(extendScript, k, owner, int64(number), ms(ttl), ms(s.fenceTTL))
}

// An ending is what a release has to know of the acquisition that it ends.
type ending struct {
	owner  string
	number Token   // fence number
	grown  bool    // a node may hold the lock with a fence below the number: it was proposed, or raised, later
	held   bool    // it was a lease, for which others may be waiting
	news   string  // channel to tell of it as well; "": none
	skip   nodeSet // nodes that were never sent anything
	line   *lining // what becomes of this process' place in the line; nil where there may be none
}

func releaseStep(k keys, e ending, s *settings) step {
	r := newStep(releaseScript, k, e.owner, int64(e.number), ms(s.fenceTTL), flag(e.grown), flag(e.held))
	switch {
	case e.line != nil:
		r.command = append(r.command, e.news, e.line.process, e.line.place, ms(e.line.ttl), ms(keepFor))
		r.command = slices.Insert(r.command, commandFirstKey+2, any(k.line()))
		r.command[commandFirstKey-1] = 3
	case e.news != "":
		r.command = append(r.command, e.news)
	}
	r.skip = e.skip
	return r
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// saveStep tells of the save on the channel news, unless that is "".
func saveStep(k keys, owner string, v version, news string, s *settings) step {
	save := newStep(saveScript, k, owner, int64(v.token), v.sequence, v.value, ms(s.fenceTTL))
	if news != "" {
		save.command = append(save.command, news)
	}
	return save
}

func inspectStep(k keys) step { return newStep(inspectScript, k) }

// lookStep keeps the line for the time, unless that is 0.
func lookStep(k keys, kept string, line time.Duration) step {
	keep := any("")
	if line > 0 {
		keep = ms(line)
	}
	return step{script: lookScript, command: []any{evalSHA, lookScript.sha, 2, k.lock, k.line(), kept, keep}}
}

// wakeStep wakes the listener that listens to the channel.
func wakeStep(inbox string) step {
	return step{script: wakeScript, command: []any{evalSHA, wakeScript.sha, 1, inbox}}
}
