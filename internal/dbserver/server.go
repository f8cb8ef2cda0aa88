package dbserver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// patience is for a start on a machine that is busy with other tests.
const patience = time.Minute

// A Server is a database server that runs until Stop.
type Server struct {
	user, database string
	dir, log       string
	port           int
	reservation    net.PacketConn // of the port
	cmd            *exec.Cmd
	exited         <-chan struct{} // closed when the process is gone; nil if it was never started
	stop           sync.Once
}

// Addr is where the server listens, as host:port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// User may do anything, and has no password.
func (s *Server) User() string { return s.user }

// Database is one that is there and empty.
func (s *Server) Database() string { return s.database }

// Stop ends the server and removes its data. A second call does nothing.
func (s *Server) Stop() {
	s.stop.Do(func() {
		if s.exited != nil {
			s.end()
		}
		// What is left of it is in the directory for temporary files.
		_ = os.RemoveAll(s.dir)
		if s.reservation != nil {
			_ = s.reservation.Close()
		}
	})
}

// end has the process end. By SIGQUIT both servers do so at once, and PostgreSQL sees to its
// children first.
func (s *Server) end() {
	if err := s.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		_ = s.cmd.Process.Kill()
	}
	late := time.NewTimer(10 * time.Second)
	defer late.Stop()
	select {
	case <-s.exited:
	case <-late.C:
		_ = s.cmd.Process.Kill()
		<-s.exited
	}
}

// start makes a Server and has begin do the rest.
func start(name string, begin func(s *Server) error) (*Server, error) {
	s := &Server{}
	err := s.prepare()
	if err == nil {
		err = begin(s)
	}
	if err != nil {
		s.Stop()
		return nil, fmt.Errorf("dbserver: start %s: %w", name, err)
	}
	return s, nil
}

// prepare makes the directory of a server, and finds a port.
func (s *Server) prepare() error {
	dir, err := os.MkdirTemp("", "dbserver")
	if err != nil {
		return err
	}
	s.dir, s.log = dir, filepath.Join(dir, "log")
	if err := giveAway(dir); err != nil {
		return err
	}
	return s.takePort()
}

// A server listens only seconds after its port was chosen. So ports come from below the range out of
// which systems take those of outgoing connections and of listeners that ask for any.
const (
	firstPort = 10000
	lastPort  = 12000
)

// takePort finds a port that is free, and keeps it from others who look for one in this way until Stop:
// the UDP socket of the same number is for one process only.
func (s *Server) takePort() error {
	for range 200 {
		s.port = firstPort + rand.IntN(lastPort-firstPort)
		reservation, err := net.ListenPacket("udp", s.Addr())
		if err != nil {
			continue
		}
		probe, err := net.Listen("tcp", s.Addr())
		if err != nil {
			_ = reservation.Close()
			continue
		}
		s.reservation = reservation
		return probe.Close()
	}
	return fmt.Errorf("no free loopback port among 200 tried between %d and %d: stop what listens there", firstPort, lastPort)
}

// launch starts a program of the server, and returns a channel that is closed when it has ended.
func (s *Server) launch(program string, args ...string) (*exec.Cmd, <-chan struct{}, error) {
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(program, args...)
	cmd.Dir = s.dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "LC_ALL=C", "HOME="+s.dir, "TMPDIR="+s.dir)
	asOrdinaryUser(cmd)
	dieWithParent(cmd)
	started, exited := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(exited)
		// Linux kills the child when the thread that started it ends: so this one stays with it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		release := tieToParent(cmd.Process.Pid)
		started <- nil
		_ = cmd.Wait()
		release()
	}()
	return cmd, exited, <-started
}

// run runs a program of the server to its end.
func (s *Server) run(program string, args ...string) error {
	cmd, exited, err := s.launch(program, args...)
	if err != nil {
		return err
	}
	<-exited
	if !cmd.ProcessState.Success() {
		return s.said(fmt.Errorf("%s: %v", filepath.Base(program), cmd.ProcessState))
	}
	return nil
}

// serve starts the server itself, and waits until it is ready. The port alone does not tell: it is open
// some time before.
func (s *Server) serve(ready func(conn net.Conn) error, program string, args ...string) error {
	cmd, exited, err := s.launch(program, args...)
	if err != nil {
		return err
	}
	s.cmd, s.exited = cmd, exited
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		err := s.ask(ready)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-s.exited:
			return s.said(fmt.Errorf("%s: %v", filepath.Base(program), cmd.ProcessState))
		case <-late.C:
			return s.said(fmt.Errorf("%s is not ready after %v: %w", filepath.Base(program), patience, err))
		}
	}
}

func (s *Server) ask(ready func(conn net.Conn) error) error {
	conn, err := net.DialTimeout("tcp", s.Addr(), time.Second)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	return ready(conn)
}

// said adds the end of the server's log to an error.
func (s *Server) said(err error) error {
	text, unread := os.ReadFile(s.log)
	if unread != nil {
		return errors.Join(err, unread)
	}
	return fmt.Errorf("%w; its log says:\n%s", err, text[max(0, len(text)-4000):])
}
