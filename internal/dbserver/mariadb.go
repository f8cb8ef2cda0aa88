package dbserver

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// StartMariaDB starts a MariaDB, and returns when it takes queries. It has no users, and asks nobody who
// they are. The error wraps ErrNotInstalled where there is none to start.
func StartMariaDB() (*Server, error) {
	mariadbd, err := find("mariadbd", "MariaDB", "/usr/sbin", "/usr/libexec", "/usr/local/sbin",
		"/opt/homebrew/opt/mariadb*/bin", "/usr/local/opt/mariadb*/bin")
	if err != nil {
		return nil, err
	}
	return start("MariaDB", func(s *Server) error {
		s.user, s.database = "root", "quorate"
		data, init := filepath.Join(s.dir, "data"), filepath.Join(s.dir, "init.sql")
		if err := os.Mkdir(data, 0o700); err != nil {
			return err
		}
		if err := giveAway(data); err != nil {
			return err
		}
		if err := os.WriteFile(init, []byte("CREATE DATABASE "+s.database+";\n"), 0o644); err != nil {
			return err
		}
		return s.serve(mariadbReady, mariadbd, "--no-defaults", "--datadir="+data, "--tmpdir="+s.dir, "--init-file="+init,
			"--skip-grant-tables", "--bind-address=127.0.0.1", "--port="+strconv.Itoa(s.port),
			"--socket="+filepath.Join(s.dir, "sock"), "--pid-file="+filepath.Join(s.dir, "pid"),
			"--innodb-flush-log-at-trx-commit=0", "--innodb-lock-wait-timeout=5", "--max-connections=200")
	})
}

// mariadbReady waits for the server's greeting.
func mariadbReady(conn net.Conn) error {
	greeting := make([]byte, 5) // length, number, and version of the protocol
	if _, err := io.ReadFull(conn, greeting); err != nil {
		return err
	}
	if greeting[4] != 10 {
		return fmt.Errorf("it greets with version %d of the protocol", greeting[4])
	}
	return nil
}
