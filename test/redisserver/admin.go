package redisserver

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// admin speaks to one server for the package's own questions. It is not go-redis, because a
// go-redis client says HELLO and CLIENT SETINFO on its own, and then CommandsProcessed could
// not tell its commands from those of the code under test.
type admin struct {
	addr     string
	tls      *tls.Config // nil for plain TCP
	user     string      // empty: no AUTH
	password string
	timeout  time.Duration
}

// probeTimeout is how long a server may take to answer that may be another's, which never does.
const probeTimeout = 2 * time.Second

// errReply is an error that the server answered with.
type errReply string

func (e errReply) Error() string { return string(e) }

// do opens a connection, asks once and closes it. The number of commands that the server has
// counted for it comes back too.
func (a admin) do(args ...string) (reply any, counted int64, err error) {
	conn, err := net.DialTimeout("tcp", a.addr, a.timeout)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(a.timeout)); err != nil {
		return nil, 0, err
	}
	if a.tls != nil {
		conn = tls.Client(conn, a.tls)
	}
	r := bufio.NewReader(conn)
	ask := func(args ...string) (any, error) {
		if _, err := conn.Write(encode(args)); err != nil {
			return nil, err
		}
		reply, err := readReply(r)
		if err != nil {
			return nil, fmt.Errorf("%s to %s: %w", args[0], a.addr, err)
		}
		counted++
		return reply, nil
	}
	if a.user != "" {
		if _, err := ask("AUTH", a.user, a.password); err != nil {
			return nil, counted, err
		}
	}
	reply, err = ask(args...)
	return reply, counted, err
}

func encode(args []string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return []byte(b.String())
}

// readReply reads one RESP2 reply: a string, an int64, nil or a []any of them.
func readReply(r *bufio.Reader) (any, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return nil, errors.New("an empty line where a reply was due")
	}
	kind, rest := line[0], line[1:]
	if kind == '+' {
		return rest, nil
	}
	if kind == '-' {
		return nil, errReply(rest)
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("a malformed reply %q: %w", line, err)
	}
	switch {
	case kind == ':':
		return n, nil
	case n < 0:
		return nil, nil
	case kind == '$':
		bulk := make([]byte, n+2)
		if _, err := io.ReadFull(r, bulk); err != nil {
			return nil, err
		}
		return string(bulk[:n]), nil
	case kind == '*':
		list := make([]any, n)
		for i := range list {
			if list[i], err = readReply(r); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return nil, fmt.Errorf("a reply of unknown kind %q", line)
}

// infoFields turns the text of INFO into its fields.
func infoFields(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[key] = value
		}
	}
	return fields
}
