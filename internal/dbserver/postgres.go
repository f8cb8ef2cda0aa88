package dbserver

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
)

// StartPostgres starts a PostgreSQL, and returns when it takes queries. The error wraps ErrNotInstalled
// where there is none to start.
func StartPostgres() (*Server, error) {
	places := []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin"}
	initdb, err := find("initdb", "PostgreSQL", places...)
	if err != nil {
		return nil, err
	}
	postgres, err := find("postgres", "PostgreSQL", places...)
	if err != nil {
		return nil, err
	}
	return start("PostgreSQL", func(s *Server) error {
		s.user, s.database = "quorate", "postgres"
		data := filepath.Join(s.dir, "data")
		if err := s.run(initdb, "-D", data, "-A", "trust", "-U", s.user, "-E", "UTF8", "--no-sync"); err != nil {
			return err
		}
		return s.serve(s.postgresReady, postgres, "-D", data, "-p", strconv.Itoa(s.port), "-h", "127.0.0.1", "-k", "",
			"-c", "fsync=off", "-c", "max_connections=200")
	})
}

// postgresReady logs in. Before the server is ready, it answers that with an error.
func (s *Server) postgresReady(conn net.Conn) error {
	body := "\x00\x03\x00\x00user\x00" + s.user + "\x00database\x00" + s.database + "\x00\x00" // protocol 3.0
	hello := append(binary.BigEndian.AppendUint32(nil, uint32(4+len(body))), body...)
	if _, err := conn.Write(hello); err != nil {
		return err
	}
	answer := make([]byte, 1)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return err
	}
	if answer[0] != 'R' { // Authentication
		return fmt.Errorf("it answers a login with a message %q", answer)
	}
	_, err := conn.Write([]byte{'X', 0, 0, 0, 4}) // Terminate
	return err
}
