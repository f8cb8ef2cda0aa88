package redlock

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// A verdict is what a node makes of one step.
type verdict int8

const (
	silent   verdict = iota // no answer yet
	accepted                // it voted for the step
	healed                  // it voted for the step and had lost the lock before
	taken                   // another holds the lock
	stale                   // its fence is too high
	failed                  // it could not be asked
)

// An answer is one node's reply to one step.
type answer struct {
	verdict    verdict
	quarantine time.Duration // > 0: it does not count, for this long
	holder     string        // of the lock, when taken
	left       time.Duration // of the holder's TTL
	fence      Token
	state      version
	woken      int  // subscribers that a release woke, or where the lock is kept, other processes in line
	kept       bool // for the next in line
	err        error
}

// yes reports whether the answer is a vote for the step that counts.
func (a *answer) yes() bool {
	return (a.verdict == accepted || a.verdict == healed) && a.quarantine == 0
}

// A version is a state with its place in the order of all states of a name. The zero version
// is no state.
type version struct {
	token    Token
	sequence int64
	value    []byte
}

func (v version) before(w version) bool {
	return v.token < w.token || (v.token == w.token && v.sequence < w.sequence)
}

func (v version) same(w version) bool {
	return v.token == w.token && v.sequence == w.sequence && bytes.Equal(v.value, w.value)
}

// A replyError is a reply that is none of those that the script documents: something else answers
// for the node, or has written to its keys. It is the server's word all the same, like an error
// that it replies with: to send the step again would bring the same.
type replyError struct{ text string }

func (e *replyError) Error() string { return e.text }

// RedisError makes it a redis.Error.
func (e *replyError) RedisError() {}

func unexpected(s *script, reply any) error {
	return &replyError{fmt.Sprintf("unexpected reply %.100q to script %s", fmt.Sprint(reply), s.name)}
}

// parseReply reads what a script returned: {verdict, …} as each script documents it, and nothing
// that is merely like it, because a vote that was not given must not be counted.
func parseReply(s *script, reply any) (answer, error) {
	if s == shardReleaseScript {
		s = releaseScript
	}
	if s == wakeScript {
		return answer{verdict: accepted}, nil
	}
	fields, _ := reply.([]any)
	switch s {
	case inspectScript:
		return parseInspection(fields)
	case lookScript:
		return parseLook(fields)
	}
	var code int64
	ok := false
	if len(fields) > 0 {
		code, ok = fields[0].(int64)
	}
	var text string // of the second field, where it is one
	if len(fields) > 1 {
		var isText bool
		text, isText = fields[1].(string)
		ok = ok && isText != (s == releaseScript)
	}
	switch {
	case !ok:
	case s == releaseScript:
		if len(fields) == 2 && code >= 0 && code <= 2 {
			kept := code == 2 // for one of the others in line, so there is one
			if woken, ok := fields[1].(int64); ok && (woken > 0 || woken == 0 && !kept) {
				return answer{verdict: accepted, woken: int(woken), kept: kept}, nil
			}
		}
	case s == saveScript && code == 1 && len(fields) == 1:
		return answer{verdict: accepted}, nil
	case s == acquireScript && code == 1 && len(fields) == 2:
		state, err := parseVersion(text)
		return answer{verdict: accepted, state: state}, err
	case s == extendScript && (code == 1 || code == 2) && len(fields) == 2:
		if text != "" {
			text += " " // the version only
		}
		state, err := parseVersion(text)
		if err == nil && len(state.value) > 0 {
			break
		}
		verdict := accepted
		if code == 2 {
			verdict = healed
		}
		return answer{verdict: verdict, state: state}, err
	case s != saveScript && code == 0 && len(fields) == 3:
		if left, ok := fields[2].(int64); ok {
			return answer{verdict: taken, holder: text, left: millis(left)}, nil
		}
	case code == -1 && len(fields) == 2:
		// A fence beyond what an int64 holds is as much too high as the highest.
		fence, err := number(text)
		if err == nil || errors.Is(err, strconv.ErrRange) {
			return answer{verdict: stale, fence: Token(fence)}, nil
		}
	}
	return answer{}, unexpected(s, reply)
}

// parseLook takes a name that is free for a vote.
func parseLook(fields []any) (answer, error) {
	if len(fields) == 2 {
		holder, ok1 := fields[0].(string)
		left, ok2 := fields[1].(int64)
		switch {
		case !ok1 || !ok2:
		case left == -2: // what PTTL says of a key that does not exist
			return answer{verdict: accepted}, nil
		default:
			return answer{verdict: taken, holder: holder, left: millis(left)}, nil
		}
	}
	return answer{}, unexpected(lookScript, fields)
}

func parseInspection(fields []any) (answer, error) {
	if len(fields) != 3 {
		return answer{}, unexpected(inspectScript, fields)
	}
	holder, ok1 := fields[0].(string)
	left, ok2 := fields[1].(int64)
	text, ok3 := fields[2].(string)
	if !ok1 || !ok2 || !ok3 {
		return answer{}, unexpected(inspectScript, fields)
	}
	a := answer{verdict: accepted, holder: holder, left: millis(left)}
	if isKept(holder) {
		a.holder, a.left = "", 0
	}
	if text == "" {
		return a, nil
	}
	fence, state, _ := strings.Cut(text, " ")
	n, err := number(fence)
	if err != nil {
		return a, &replyError{fmt.Sprintf("the fence key holds %.40q, which is no token; delete it while nobody holds the name", fence)}
	}
	a.fence = Token(n)
	a.state, err = parseVersion(state)
	return a, err
}

// parseVersion reads "token sequence value".
func parseVersion(text string) (version, error) {
	if text == "" {
		return version{}, nil
	}
	token, rest, _ := strings.Cut(text, " ")
	sequence, value, ok := strings.Cut(rest, " ")
	t, err1 := number(token)
	s, err2 := number(sequence)
	if !ok || err1 != nil || err2 != nil {
		return version{}, &replyError{fmt.Sprintf("the fence key holds a state that is not ours: %.40q", text)}
	}
	return version{token: Token(t), sequence: s, value: []byte(value)}, nil
}

// number reads digits and nothing else, as the scripts do.
func number(text string) (int64, error) {
	if strings.Trim(text, "0123456789") != "" {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(text, 10, 64)
}

// millis makes a time of a PTTL; without a TTL (-1) or a key (-2) there is nothing to wait for.
// PTTL cuts off: 0 says that less than a millisecond is left, which is worth waiting for.
func millis(ms int64) time.Duration {
	const most = int64(math.MaxInt64 / time.Millisecond)
	if ms == 0 {
		ms = 1
	}
	return time.Duration(min(max(0, ms), most)) * time.Millisecond
}

// refusal says why an answer is not a vote for the step, or nil.
func (a *answer) refusal() error {
	switch a.verdict {
	case accepted, healed:
		if a.quarantine > 0 {
			return fmt.Errorf("restarted lately, its vote does not count for another %v", a.quarantine.Round(time.Millisecond))
		}
		return nil
	case taken:
		return fmt.Errorf("held by %s for another %v", shown(a.holder), a.left.Round(time.Millisecond))
	case stale:
		return fmt.Errorf("has seen token %d", a.fence)
	case failed:
		return a.err
	}
	return nil // no answer yet: the others decided
}
