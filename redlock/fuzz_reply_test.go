package redlock

import (
	"errors"
	"regexp"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// replies are what servers might say instead of what the scripts return.
var replies = []string{
	// the truth, in every dress
	"*2\r\n:1\r\n$0\r\n\r\n", "*2\r\n:1\r\n$9\r\n7 1 state\r\n", "*2\r\n:2\r\n$3\r\n7 1\r\n", "*1\r\n:1\r\n",
	"*2\r\n$0\r\n\r\n:-2\r\n", "*2\r\n$5\r\nother\r\n:8000\r\n", "*2\r\n$5\r\nother\r\n:-1\r\n",
	"*3\r\n:0\r\n$5\r\nother\r\n:8000\r\n", "*2\r\n:-1\r\n$2\r\n99\r\n", "*2\r\n:1\r\n:3\r\n", "*2\r\n:0\r\n:0\r\n", "*2\r\n:2\r\n:1\r\n",
	"*3\r\n$1\r\na\r\n:-1\r\n$12\r\n9 7 1 value\n\r\n", "~2\r\n:1\r\n=4\r\ntxt:\r\n", "*2\r\n:1\r\n+\r\n",
	// a yes that is none: wrong types, lengths and versions
	"*2\r\n:1\r\n:5\r\n", "*2\r\n:1\r\n$-1\r\n", "*2\r\n:1\r\n_\r\n", "*2\r\n:1\r\n*0\r\n", "*2\r\n:1\r\n%0\r\n", "*2\r\n:1\r\n#t\r\n",
	"*2\r\n:1\r\n-ERR no\r\n", "*2\r\n:1\r\n,1.5\r\n", "*2\r\n#t\r\n$0\r\n\r\n", "*2\r\n(1\r\n$0\r\n\r\n", "*2\r\n,1\r\n$0\r\n\r\n", "*2\r\n+1\r\n$0\r\n\r\n",
	"*2\r\n:1\r\n$5\r\nhello\r\n", "*2\r\n:1\r\n$4\r\n1 2 \r\n", "*2\r\n:1\r\n$5\r\n-1 -2\r\n", "*2\r\n:1\r\n$6\r\n+1 +2 \r\n",
	"*1\r\n:2\r\n", "*1\r\n:0\r\n", "*0\r\n", "*-1\r\n", "$-1\r\n", "_\r\n", ":1\r\n", "+OK\r\n", "$1\r\n1\r\n", "#t\r\n", ",inf\r\n", ",nan\r\n",
	"*2\r\n:2\r\n$0\r\n\r\n", "*3\r\n:1\r\n$0\r\n\r\n:1\r\n", "*1\r\n*2\r\n:1\r\n$0\r\n\r\n", "*2\r\n:3\r\n$0\r\n\r\n", "%1\r\n:1\r\n$0\r\n\r\n",
	"*2\r\n:1\r\n:-1\r\n", "*2\r\n:9\r\n:0\r\n", "*2\r\n:2\r\n:0\r\n", "*2\r\n:2\r\n:-1\r\n", "*2\r\n:1\r\n:9223372036854775807\r\n",
	// numbers at their limits
	"*2\r\n:-1\r\n$16\r\n9007199254740992\r\n", "*2\r\n:-1\r\n$19\r\n9223372036854775807\r\n", "*2\r\n:-1\r\n$19\r\n9223372036854775808\r\n",
	"*2\r\n:-1\r\n$30\r\n999999999999999999999999999999\r\n", "*2\r\n:-1\r\n$2\r\n-5\r\n", "*2\r\n:-1\r\n$3\r\nabc\r\n", "*2\r\n:-1\r\n:7\r\n", "*2\r\n:-1\r\n$0\r\n\r\n",
	"*3\r\n:0\r\n$5\r\nother\r\n:9223372036854775807\r\n", "*3\r\n:0\r\n$5\r\nother\r\n:-9223372036854775808\r\n", "*3\r\n:0\r\n:5\r\n$1\r\nx\r\n",
	"*3\r\n$0\r\n\r\n:9223372036854775807\r\n$19\r\n9223372036854775808\r\n", "*3\r\n:1\r\n:1\r\n:1\r\n", "*3\r\n$0\r\n\r\n:0\r\n$2\r\n-1\r\n",
	"*2\r\n:9223372036854775808\r\n$0\r\n\r\n", "*2\r\n:1\r\n$39\r\n9223372036854775808 9223372036854775808 x\r\n",
	// errors
	"-ERR no\r\n", "-NOSCRIPT No matching script\r\n", "-LOADING Redis is loading\r\n", "-READONLY replica\r\n", "-MOVED 1 10.0.0.9:6379\r\n",
	"-ASK 1 :0\r\n", "-WRONGTYPE kind\r\n", "-NOAUTH Authentication required.\r\n", "-NOPERM no\r\n", "-BUSY script\r\n", "-\r\n", "!6\r\nERR no\r\n", "-OOM command not allowed\r\n",
	// cut off, or not the protocol at all
	"", "*", "*2\r\n", "*2\r\n:1\r\n", "*2\r\n:1\r\n$5\r\nab", "\r\n", "\x00", "HTTP/1.1 400 Bad Request\r\n\r\n", "*2\r\n:1\r\n$x\r\n", "*-2\r\n", "$-2\r\n", "|1\r\n+a\r\n+b\r\n*1\r\n:1\r\n",
	"$9223372036854775807\r\n", "*9223372036854775807\r\n", "%9223372036854775807\r\n", "=9223372036854775806\r\n", "*2\r\n:1\r\n$9223372036854775807\r\n",
	// more than was asked for
	"*2\r\n:1\r\n$0\r\n\r\n*2\r\n:1\r\n$0\r\n\r\n", "*1\r\n:1\r\n:1\r\n:1\r\n:1\r\n", ">2\r\n+invalidate\r\n*0\r\n*2\r\n:1\r\n$0\r\n\r\n", ">3\r\n+message\r\n+a\r\n+b\r\n",
	">2\r\n:1\r\n$0\r\n\r\n", "-ERR no\r\n*2\r\n:1\r\n$0\r\n\r\n",
}

var (
	storedState = regexp.MustCompile(`(?s)^\d+ \d+ .*$`)
	versionOnly = regexp.MustCompile(`^\d+ \d+$`)
)

// isVote is what a vote for a step looks like, as the head of each script in lua/ says it: the
// oracle of parseReply.
func isVote(s *script, reply any) bool {
	fields, ok := reply.([]any)
	if !ok || len(fields) == 0 {
		return false
	}
	code, isNumber := fields[0].(int64)
	switch {
	case s == acquireScript && isNumber && len(fields) == 2:
		text, ok := fields[1].(string)
		return ok && code == 1 && (text == "" || storedState.MatchString(text) && inRange(text))
	case s == extendScript && isNumber && len(fields) == 2:
		text, ok := fields[1].(string)
		return ok && (code == 1 || code == 2) && (text == "" || versionOnly.MatchString(text) && inRange(text))
	case s == releaseScript && isNumber && len(fields) == 2:
		woken, ok := fields[1].(int64)
		return ok && ((code == 0 || code == 1) && woken >= 0 || code == 2 && woken >= 1)
	case s == saveScript && isNumber:
		return code == 1 && len(fields) == 1
	case s == lookScript && len(fields) == 2:
		_, ok1 := fields[0].(string)
		left, ok2 := fields[1].(int64)
		return ok1 && ok2 && left == -2
	case s == inspectScript && len(fields) == 3:
		_, ok1 := fields[0].(string)
		_, ok2 := fields[1].(int64)
		_, ok3 := fields[2].(string)
		return ok1 && ok2 && ok3
	}
	return false
}

// inRange reports whether the two numbers before a state are Go's.
func inRange(text string) bool {
	for _, number := range regexp.MustCompile(`\d+`).FindAllString(text, 2) {
		if _, err := strconv.ParseInt(number, 10, 64); err != nil {
			return false
		}
	}
	return true
}

// Whatever a server answers to a script, the answer is a vote only if the script says so that way,
// and what is taken from it is in its range.
func FuzzReplyIsAVoteOnlyInItsForm(f *testing.F) {
	for _, wire := range replies {
		f.Add([]byte(wire))
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		reply, _, ok := decode(wire)
		if !ok {
			return
		}
		for _, s := range []*script{acquireScript, extendScript, releaseScript, saveScript, inspectScript, lookScript} {
			a, err := parseReply(s, reply)
			vote := err == nil && a.yes()
			if vote {
				require.True(t, isVote(s, reply), "%s: %q", s.name, wire)
			} else if s != inspectScript { // whose answer has a fence in it, with a form of its own
				require.False(t, isVote(s, reply), "%s: %q", s.name, wire)
			}
			require.GreaterOrEqual(t, a.left, time.Duration(0), "%s: %q", s.name, wire)
			require.GreaterOrEqual(t, a.fence, Token(0), "%s: %q", s.name, wire)
			require.GreaterOrEqual(t, a.state.token, Token(0), "%s: %q", s.name, wire)
			require.GreaterOrEqual(t, a.woken, 0, "%s: %q", s.name, wire)
			if err != nil {
				require.Less(t, len(err.Error()), 600, "%s", s.name)
			} else if refusal := a.refusal(); refusal != nil {
				require.Less(t, len(refusal.Error()), 1000, "%s", s.name)
			}
		}
	})
}

// A state that is stored comes back as it was, and what is none is told.
func FuzzStateRoundTrip(f *testing.F) {
	f.Add(int64(1), int64(1), []byte("state"), "1 1 state")
	f.Add(int64(1)<<53, int64(0), []byte(""), "")
	f.Add(int64(7), int64(1<<62), []byte(" 1 2 \x00\r\n\xff"), "1 1")
	f.Add(int64(0), int64(0), []byte("x"), "9223372036854775808 1 x")
	f.Add(int64(0), int64(0), []byte("x"), "-1 -1 x")
	f.Fuzz(func(t *testing.T, token, sequence int64, value []byte, text string) {
		if token >= 0 && sequence >= 0 {
			stored := strconv.FormatInt(token, 10) + " " + strconv.FormatInt(sequence, 10) + " " + string(value)
			v, err := parseVersion(stored)
			require.NoError(t, err)
			require.True(t, v.same(version{Token(token), sequence, value}))
			require.False(t, v.before(v))
		}
		v, err := parseVersion(text)
		switch {
		case err != nil:
			require.Less(t, len(err.Error()), 400)
			require.False(t, text == "" || storedState.MatchString(text) && inRange(text), "%q is a state", text)
		case text == "":
			require.True(t, v.same(version{}))
		default:
			require.True(t, storedState.MatchString(text) && inRange(text), "%q is no state", text)
		}
	})
}

// lies are the commands that a liar may lie about.
var lies = []func(command []string) bool{
	func(c []string) bool { return scriptOf(c) == acquireScript },
	func(c []string) bool { return scriptOf(c) == extendScript },
	func(c []string) bool { return scriptOf(c) == releaseScript },
	func(c []string) bool { return scriptOf(c) == saveScript },
	func(c []string) bool { return scriptOf(c) == inspectScript },
	func(c []string) bool { return c[0] == "info" },
	func(c []string) bool { return c[0] == "hello" },
	func(c []string) bool { return scriptOf(c) != nil },
}

const lieAboutInfo, lieAboutHello, lieAboutAll = 5, 6, 7

// announced finds lengths for which the client makes room before anything comes, as a reply announces
// them, unless they are beyond all memory, which is an error.
var announced = regexp.MustCompile(`[$*=~>%|!]\+?[0-9]{5,15}([^0-9]|$)`)

// claims reports whether there is a vote for a script somewhere in a lie.
func claims(s *script, lie []byte) bool {
	for i := range lie {
		if reply, _, ok := decode(lie[i:]); ok && isVote(s, reply) {
			return true
		}
	}
	return false
}

// Servers that answer anything to one of the commands cannot make a step succeed for which there is
// no quorum, a minority of them cannot make one fail, and nobody waits for them for longer than
// the time limits.
func FuzzLyingServers(f *testing.F) {
	for i, wire := range replies {
		for _, target := range []int{i % len(lies), (i + 3) % len(lies), lieAboutAll} {
			f.Add([]byte(wire), uint8(target), uint8(i+target), i%2 == 0, i%5 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, lie []byte, target, liars uint8, resp3, hangUp bool) {
		if len(lie) > 4096 || announced.Match(lie) {
			return // what a client does with gigabytes is its own affair
		}
		target, liars = target%uint8(len(lies)), 1+liars%3
		synctest.Test(t, func(t *testing.T) { lieTo(t, lie, int(target), int(liars), resp3, hangUp) })
	})
}

func lieTo(t *testing.T, lie []byte, target, liars int, resp3, hangUp bool) {
	servers := make([]*liar, 3)
	for i := range servers {
		servers[i] = &liar{resp3: resp3}
		if i < liars {
			servers[i].hangUp = hangUp
			servers[i].lie = func(command []string) []byte {
				if lies[target](command) {
					return append([]byte{}, lie...)
				}
				return nil
			}
		}
	}
	l, end := lockerOver(t, servers)
	defer end()
	// The first connections have a second and a half; each step then has the time of a pipeline, of
	// another for scripts that the node does not know, and of a check.
	const limit = connectTimeout + DefaultNodeTimeout + 3*DefaultNodeTimeout
	step := func(s *script, f func() error) {
		t.Helper()
		begin := time.Now()
		err := f()
		require.LessOrEqual(t, time.Since(begin), limit, "%s", s.name)
		if errors.Is(err, ErrSameServer) {
			return // the lie was another's run_id: a fleet that is not one is not used at all
		}
		about := lies[target](evalOf(s))
		switch {
		case liars == 1:
			require.NoError(t, err, "%s: a minority lies", s.name)
		case about && !claims(s, lie):
			require.Error(t, err, "%s: nobody said yes", s.name)
		case !about && target != lieAboutInfo && target != lieAboutHello:
			// What follows a lie about another step finds suspect nodes at most.
			if err != nil {
				require.ErrorIs(t, err, ErrNoQuorum, "%s: all said yes", s.name)
			}
		}
	}
	ctx := t.Context()
	var lease *Lease
	step(acquireScript, func() (err error) { lease, err = l.TryAcquire(ctx, "name"); return err })
	step(inspectScript, func() error { _, err := l.Inspect(ctx, "name"); return err })
	if lease == nil {
		return
	}
	step(extendScript, func() error { return lease.Extend(ctx) })
	if lease.Err() == nil {
		step(saveScript, func() error { return lease.Save(ctx, []byte("state")) })
		step(releaseScript, func() error { return lease.Release(ctx) })
	}
}

func evalOf(s *script) []string { return []string{"evalsha", s.sha} }
