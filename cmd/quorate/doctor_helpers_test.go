package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// diagnose runs the doctor on the nodes with these URLs.
func diagnose(t *testing.T, urls []string, args ...string) (diagnosis, outcome) {
	t.Helper()
	line := []string{"doctor", "-o", "json"}
	if !slices.Contains(args, "--timeout") {
		line = append(line, "--timeout", inTime.String()) // which a busy machine may take
	}
	got := on(t, urls, append(line, args...)...)
	var d diagnosis
	require.NoError(t, json.Unmarshal([]byte(got.out), &d), got.out+got.err)
	return d, got
}

// diagnoseUntil runs the doctor again until it finds this: on a busy machine answers may be late, and not be counted.
func diagnoseUntil(t *testing.T, v verdict, check string, urls []string, args ...string) (d diagnosis, got outcome) {
	t.Helper()
	for began := time.Now(); ; {
		d, got = diagnose(t, urls, args...)
		found := slices.ContainsFunc(d.Findings, func(f finding) bool { return f.Verdict == v && f.Check == check })
		if found || time.Since(began) > inTime {
			return d, got
		}
	}
}

// of are the findings of a check, as verdict, node and text.
func (d *diagnosis) of(check string) (found []string) {
	for _, f := range d.Findings {
		if f.Check == check {
			found = append(found, fmt.Sprintf("%s %s: %s; %s", f.Verdict, f.Node, f.Found, f.Advice))
		}
	}
	return found
}

// requireFinding sees that a check has found something with these words.
func (d *diagnosis) requireFinding(t *testing.T, v verdict, check string, words ...string) {
	t.Helper()
	for _, text := range d.of(check) {
		matches := strings.HasPrefix(text, string(v)+" ")
		for _, word := range words {
			matches = matches && strings.Contains(text, word)
		}
		if matches {
			return
		}
	}
	require.FailNow(t, "no such finding", "%s %s %q among:\n%s", v, check, words, strings.Join(d.of(check), "\n"))
}

// A pretender answers as a Redis server does that is set up in ways which an embedded node does not know.
type pretender struct {
	info   map[string]string
	answer func(command []string) (reply string, ok bool)
}

// anInfo is that of a sound master, but for the changes: key, value, ….
func anInfo(changes ...string) map[string]string {
	info := map[string]string{
		"redis_version": "7.0.15", "run_id": strings.ToLower(randomText() + randomText()), "uptime_in_seconds": "3600",
		"role": "master", "connected_slaves": "0", "maxmemory_policy": "noeviction", "maxmemory": "0", "used_memory": "1000",
		"aof_enabled": "0", "rdb_last_bgsave_status": "ok", "cluster_enabled": "0",
	}
	for i := 0; i < len(changes); i += 2 {
		info[changes[i]] = changes[i+1]
	}
	return info
}

// pretend serves until the test ends, and returns the URL.
func pretend(t *testing.T, p pretender) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			all.Go(func() { p.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for _, conn := range conns {
			_ = conn.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return "redis://" + listener.Addr().String()
}

func (p *pretender) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	for r := bufio.NewReader(conn); ; {
		command, err := readCommand(r)
		if err != nil {
			return
		}
		if _, err := io.WriteString(conn, p.reply(command)); err != nil {
			return
		}
	}
}

func readCommand(r *bufio.Reader) ([]string, error) {
	length := func() (int, error) {
		line, err := r.ReadString('\n')
		if err != nil || len(line) < 2 {
			return 0, io.ErrUnexpectedEOF
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	n, err := length()
	if err != nil {
		return nil, err
	}
	var command []string
	for range n {
		size, err := length()
		if err != nil {
			return nil, err
		}
		word := make([]byte, size+2)
		if _, err := io.ReadFull(r, word); err != nil {
			return nil, err
		}
		command = append(command, string(word[:size]))
	}
	command[0] = strings.ToLower(command[0])
	return command, nil
}

func (p *pretender) reply(command []string) string {
	if p.answer != nil {
		if reply, ok := p.answer(command); ok {
			return reply
		}
	}
	switch command[0] {
	case "ping":
		return "+PONG\r\n"
	case "info":
		var b strings.Builder
		for key, value := range p.info {
			fmt.Fprintf(&b, "%s:%s\r\n", key, value)
		}
		if p.info["server_time_usec"] == "" {
			fmt.Fprintf(&b, "server_time_usec:%d\r\n", time.Now().UnixMicro())
		}
		return fmt.Sprintf("$%d\r\n%s\r\n", b.Len(), b.String())
	case "evalsha":
		return "-NOSCRIPT No matching script\r\n"
	case "subscribe", "unsubscribe":
		channel := command[len(command)-1]
		return fmt.Sprintf("*3\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n:1\r\n", len(command[0]), command[0], len(channel), channel)
	case "set":
		return "+OK\r\n"
	case "get":
		return "$-1\r\n"
	case "pexpire", "pttl", "publish", "del", "eval":
		return ":1\r\n"
	}
	return "-ERR unknown command\r\n"
}

// refusing answers every command so.
func refusing(reply string) pretender {
	return pretender{answer: func([]string) (string, bool) { return reply + "\r\n", true }}
}
