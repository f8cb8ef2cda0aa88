package redlock

import (
	"bytes"
	"fmt"
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
	woken      int // subscribers that a release woke
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

// parseReply reads what a script returned: {verdict, …} as each script documents it.
func parseReply(s *script, reply any) (answer, error) {
	if s == wakeScript {
		return answer{verdict: accepted}, nil
	}
	fields, ok := reply.([]any)
	if !ok || len(fields) == 0 {
		return answer{}, fmt.Errorf("unexpected reply %v to script %s", reply, s.name)
	}
	if s == inspectScript {
		return parseInspection(fields)
	}
	code, ok := fields[0].(int64)
	if !ok {
		return answer{}, fmt.Errorf("unexpected reply %v to script %s", reply, s.name)
	}
	switch {
	case s == releaseScript && len(fields) == 2:
		woken, _ := fields[1].(int64)
		return answer{verdict: accepted, woken: int(woken)}, nil
	case s == saveScript && code == 1:
		return answer{verdict: accepted}, nil
	case code == 1 && len(fields) == 2, code == 2 && len(fields) == 2:
		text, _ := fields[1].(string)
		if s == extendScript && text != "" {
			text += " " // the version only
		}
		state, err := parseVersion(text)
		verdict := accepted
		if code == 2 {
			verdict = healed
		}
		return answer{verdict: verdict, state: state}, err
	case code == 0 && len(fields) == 3:
		holder, _ := fields[1].(string)
		return answer{verdict: taken, holder: holder, left: millis(fields[2])}, nil
	case code == -1 && len(fields) == 2:
		text, _ := fields[1].(string)
		fence, err := strconv.ParseInt(text, 10, 64)
		return answer{verdict: stale, fence: Token(fence)}, err
	}
	return answer{}, fmt.Errorf("unexpected reply %v to script %s", reply, s.name)
}

func parseInspection(fields []any) (answer, error) {
	if len(fields) != 3 {
		return answer{}, fmt.Errorf("unexpected reply %v to script inspect", fields)
	}
	holder, _ := fields[0].(string)
	a := answer{verdict: accepted, holder: holder, left: millis(fields[1])}
	text, _ := fields[2].(string)
	if text == "" {
		return a, nil
	}
	fence, state, _ := strings.Cut(text, " ")
	number, err := strconv.ParseInt(fence, 10, 64)
	if err != nil {
		return a, fmt.Errorf("fence key holds %q: %w", fence, err)
	}
	a.fence = Token(number)
	a.state, err = parseVersion(state)
	return a, err
}

// parseVersion reads "token sequence value".
func parseVersion(text string) (version, error) {
	if text == "" {
		return version{}, nil
	}
	token, rest, ok1 := strings.Cut(text, " ")
	sequence, value, ok2 := strings.Cut(rest, " ")
	t, err1 := strconv.ParseInt(token, 10, 64)
	s, err2 := strconv.ParseInt(sequence, 10, 64)
	if !ok1 || !ok2 || err1 != nil || err2 != nil {
		return version{}, fmt.Errorf("the fence key holds a state that is not ours: %.40q", text)
	}
	return version{token: Token(t), sequence: s, value: []byte(value)}, nil
}

// millis reads a PTTL; without a TTL (-1) or a key (-2) there is nothing to wait for.
func millis(reply any) time.Duration {
	ms, _ := reply.(int64)
	return time.Duration(max(0, ms)) * time.Millisecond
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
		return fmt.Errorf("held by %s for another %v", a.holder, a.left.Round(time.Millisecond))
	case stale:
		return fmt.Errorf("has seen token %d", a.fence)
	case failed:
		return a.err
	}
	return nil // no answer yet: the others decided
}
