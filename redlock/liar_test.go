package redlock

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock/redlocktest"
)

// A liar is a server, in memory, that answers some commands with bytes of the test's choice, and
// all others as an honest node would that votes for everything.
type liar struct {
	id    string // run_id
	resp3 bool
	// lie is what it answers, or nil for the truth. After a lie with hangUp it closes the
	// connection.
	lie    func(command []string) []byte
	hangUp bool
}

// dial is for redis.Options.Dialer. Two goroutines serve the connection, because a pipe has no
// buffer and a client sends all of a pipeline before it reads; both end when the client closes it.
func (l *liar) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	answers := make(chan []byte, 64)
	go func() {
		for answer := range answers {
			if _, err := server.Write(answer); err != nil || (len(answer) == 0 && l.hangUp) {
				_ = server.Close() // the other one sees it
			}
		}
		_ = server.Close()
	}()
	go func() {
		defer close(answers)
		in := bufio.NewReader(server)
		for {
			command, err := readCommand(in)
			if err != nil {
				return
			}
			var answer []byte
			if l.lie != nil {
				answer = l.lie(command)
			}
			if answer == nil {
				answers <- []byte(l.truth(command))
				continue
			}
			if len(answer) > 0 {
				answers <- answer
			}
			if l.hangUp {
				answers <- nil
			}
		}
	}()
	return client, nil
}

func readCommand(in *bufio.Reader) ([]string, error) {
	length := func(kind byte) (int, error) {
		line, err := in.ReadString('\n')
		if err != nil || line[0] != kind {
			return 0, fmt.Errorf("not a command: %q, %w", line, err)
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	n, err := length('*')
	if err != nil {
		return nil, err
	}
	command := make([]string, n)
	for i := range command {
		size, err := length('$')
		if err != nil {
			return nil, err
		}
		text := make([]byte, size+2)
		if _, err := io.ReadFull(in, text); err != nil {
			return nil, err
		}
		command[i] = string(text[:size])
	}
	return command, nil
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

// scriptOf is the script that a command runs, or nil.
func scriptOf(command []string) *script {
	for _, s := range []*script{acquireScript, extendScript, releaseScript, saveScript, inspectScript, lookScript, wakeScript} {
		if len(command) > 1 && (command[1] == s.sha || command[1] == s.src) {
			return s
		}
	}
	return nil
}

func (l *liar) truth(command []string) string {
	switch strings.ToUpper(command[0]) {
	case "HELLO":
		if l.resp3 {
			return "%2\r\n" + bulk("server") + bulk("redis") + bulk("proto") + ":3\r\n"
		}
		return "-ERR unknown command 'HELLO'\r\n"
	case "INFO":
		return bulk("run_id:" + l.id + "\r\nuptime_in_seconds:100000\r\nrole:master\r\nmaster_replid2:0\r\n")
	}
	switch scriptOf(command) {
	case acquireScript, extendScript:
		return "*2\r\n:1\r\n$0\r\n\r\n"
	case releaseScript:
		return "*2\r\n:1\r\n:0\r\n"
	case saveScript:
		return "*1\r\n:1\r\n"
	case inspectScript:
		return "*3\r\n$0\r\n\r\n:-2\r\n$0\r\n\r\n"
	case lookScript:
		return "*2\r\n$0\r\n\r\n:-2\r\n"
	case wakeScript:
		return ":0\r\n"
	}
	return "+OK\r\n"
}

// lockerOver makes a Locker over servers of the test's, for a bubble. What it returns closes it.
func lockerOver(t *testing.T, servers []*liar, opts ...Option) (l *Locker, end func()) {
	t.Helper()
	clients := make([]redis.UniversalClient, len(servers))
	for i, s := range servers {
		s.id = fmt.Sprint("server-", i)
		clients[i] = redis.NewClient(&redis.Options{
			Addr: fmt.Sprintf("10.0.0.%d:6379", i+1), Dialer: s.dial,
			// See redlocktest.Host.Clients.
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
	}
	opts = append([]Option{WithClock(redlocktest.NewClock()), WithIdentity("test"), WithLogger(slog.New(slog.DiscardHandler))}, opts...)
	l, err := New(clients, opts...)
	require.NoError(t, err)
	return l, func() {
		_ = l.Close()
		for _, c := range clients {
			_ = c.Close()
		}
	}
}

// decode reads one value of the protocol, version 2 or 3, as go-redis hands it to a script's
// caller, and returns what follows it. It is written from the specification, and dumb.
func decode(wire []byte) (value any, rest []byte, ok bool) {
	head, rest, ok := bytes.Cut(wire, []byte("\r\n"))
	if !ok || len(head) == 0 {
		return nil, nil, false
	}
	text := string(head[1:])
	n, err := strconv.Atoi(text)
	switch head[0] {
	case '+':
		return text, rest, true
	case ':':
		i, err := strconv.ParseInt(text, 10, 64)
		return i, rest, err == nil
	case ',':
		f, err := strconv.ParseFloat(text, 64)
		return f, rest, err == nil
	case '#':
		return text == "t", rest, text == "t" || text == "f"
	case '(':
		i, ok := new(big.Int).SetString(text, 10)
		return i, rest, ok
	case '_':
		return nil, rest, true
	case '-':
		return fmt.Errorf("%s", text), rest, true
	case '$', '=', '!':
		if err != nil || n < 0 || len(rest)-2 < n {
			return nil, rest, err == nil && n == -1
		}
		text, rest = string(rest[:n]), rest[n+2:]
		switch head[0] {
		case '!':
			return fmt.Errorf("%s", text), rest, true
		case '=':
			if len(text) < 4 {
				return nil, nil, false
			}
			text = text[4:]
		}
		return text, rest, true
	case '*', '~', '>', '%':
		if err != nil || n < 0 || n > len(rest) {
			return nil, rest, err == nil && n == -1
		}
		if head[0] == '%' {
			n *= 2
		}
		values := make([]any, n)
		for i := range values {
			if values[i], rest, ok = decode(rest); !ok {
				return nil, nil, false
			}
		}
		if head[0] == '%' {
			return map[any]any{}, rest, true // no script answers with one, whatever is in it
		}
		return values, rest, true
	}
	return nil, nil, false
}
