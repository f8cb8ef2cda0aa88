package gates

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// A server is a running database server. It ends by its own process.
type server struct {
	cmd    *exec.Cmd
	dir    string
	log    string
	port   int
	exited chan struct{}
}

// find looks for a program on the PATH, and where distributions put it beside.
func find(name string, places ...string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, place := range places {
		found, _ := filepath.Glob(filepath.Join(place, name))
		if len(found) > 0 {
			return found[len(found)-1], nil
		}
	}
	return "", fmt.Errorf("there is no %s: run scripts/install-databases", name)
}

// newServer makes a directory that the ordinary user can write to, and finds a port.
func newServer() (*server, error) {
	dir, err := os.MkdirTemp("", "gates")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, log: filepath.Join(dir, "log"), exited: make(chan struct{})}
	if uid := ordinary(&exec.Cmd{}); uid >= 0 {
		if err := os.Chown(dir, uid, -1); err != nil {
			return nil, err
		}
	}
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.port = probe.Addr().(*net.TCPAddr).Port
	return s, probe.Close()
}

func (s *server) command(program string, args ...string) (*exec.Cmd, error) {
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = s.dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "LC_ALL=C", "HOME="+s.dir, "TMPDIR="+s.dir)
	ordinary(cmd)
	return cmd, nil
}

// start runs the server and waits until it answers.
func (s *server) start(driver, dsn, program string, args ...string) (*sql.DB, error) {
	var err error
	if s.cmd, err = s.command(program, args...); err != nil {
		return nil, err
	}
	started := make(chan error, 1)
	go func() {
		defer close(s.exited)
		// Linux kills the child when the thread that started it ends: so this one stays with it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			_ = s.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		err := db.PingContext(ctx)
		cancel()
		if err == nil {
			return db, nil
		}
		select {
		case <-tick.C:
		case <-s.exited:
			return nil, errors.Join(err, s.said())
		case <-late:
			return nil, errors.Join(err, s.said())
		}
	}
}

func (s *server) said() error {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err
	}
	return fmt.Errorf("the server says:\n%s", text[max(0, len(text)-4000):])
}

// stop ends the server. Told by SIGQUIT, both end at once, and PostgreSQL sees to its children first.
func (s *server) stop() {
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Signal(syscall.SIGQUIT)
		select {
		case <-s.exited:
		case <-time.After(10 * time.Second):
			_ = s.cmd.Process.Kill()
			<-s.exited
		}
	}
	if err := os.RemoveAll(s.dir); err != nil {
		fmt.Fprintln(os.Stderr, "gates:", err)
	}
}

// startPostgres starts a PostgreSQL without passwords, which syncs nothing to the disk.
func startPostgres(s *server) (*sql.DB, error) {
	places := []string{"/usr/lib/postgresql/*/bin", "/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin"}
	initdb, err := find("initdb", places...)
	if err != nil {
		return nil, err
	}
	postgres, err := find("postgres", places...)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(s.dir, "data")
	cmd, err := s.command(initdb, "-D", data, "-A", "trust", "-U", "quorate", "-E", "UTF8", "--no-sync")
	if err != nil {
		return nil, err
	}
	if err := cmd.Run(); err != nil {
		return nil, errors.Join(err, s.said())
	}
	return s.start("pgx", fmt.Sprintf("postgres://quorate@127.0.0.1:%d/postgres?sslmode=disable", s.port), postgres,
		"-D", data, "-p", strconv.Itoa(s.port), "-h", "127.0.0.1", "-k", "", "-c", "fsync=off", "-c", "max_connections=100")
}

// startMariaDB starts a MariaDB that has no users, and asks nobody who they are.
func startMariaDB(s *server) (*sql.DB, error) {
	mariadbd, err := find("mariadbd", "/usr/sbin", "/usr/libexec")
	if err != nil {
		return nil, err
	}
	data := filepath.Join(s.dir, "data")
	mkdir, err := s.command("mkdir", data)
	if err != nil {
		return nil, err
	}
	if err := mkdir.Run(); err != nil {
		return nil, errors.Join(err, s.said())
	}
	db, err := s.start("mysql", s.mysql("", ""), mariadbd, "--no-defaults", "--datadir="+data, "--tmpdir="+s.dir,
		"--skip-grant-tables", "--bind-address=127.0.0.1", "--port="+strconv.Itoa(s.port),
		"--socket="+filepath.Join(s.dir, "sock"), "--pid-file="+filepath.Join(s.dir, "pid"),
		"--innodb-flush-log-at-trx-commit=0", "--innodb-lock-wait-timeout=5")
	if err != nil {
		return nil, err
	}
	_, err = db.Exec("CREATE DATABASE quorate")
	return db, err
}

func (s *server) mysql(database, params string) string {
	return fmt.Sprintf("root@tcp(127.0.0.1:%d)/%s?%s", s.port, database, params)
}

var servers struct {
	postgres, mariadb *server
	postgresDB        *sql.DB
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run starts the servers, which all tests share, and ends them.
func run(m *testing.M) int {
	say := func(err error) int {
		fmt.Fprintln(os.Stderr, "gates:", err)
		return 1
	}
	var err error
	if servers.postgres, err = newServer(); err != nil {
		return say(err)
	}
	defer servers.postgres.stop()
	if servers.mariadb, err = newServer(); err != nil {
		return say(err)
	}
	defer servers.mariadb.stop()
	if servers.postgresDB, err = startPostgres(servers.postgres); err != nil {
		return say(err)
	}
	defer servers.postgresDB.Close()
	db, err := startMariaDB(servers.mariadb)
	if err != nil {
		return say(err)
	}
	defer db.Close()
	return m.Run()
}
