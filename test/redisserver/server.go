package redisserver

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// startTimeout bounds every wait for a server. It is long because a loaded CI machine is
// slow, and costs nothing where it is not: waits end as soon as the server answers.
const startTimeout = 30 * time.Second

const pollInterval = 5 * time.Millisecond

// Server is one redis-server process, or the place where one was: it keeps its port, its
// directory and its configuration while the process is down.
//
// Its methods may be called from any goroutine. What goes wrong in them is reported with
// tb.Errorf, because only the test's own goroutine may call tb.Fatalf.
type Server struct {
	tb      testing.TB
	opts    options
	binary  string
	dir     string
	port    int
	busPort int      // of a cluster's master
	args    []string // after the configuration file: a sentinel has one
	env     []string // added to the test's own

	mu      sync.Mutex
	proc    *process
	counted int64  // commands of our own that this process has counted
	clock   *clock // nil: the machine's
}

// Start starts a redis-server and returns once it answers. It is killed when the test ends.
// Without a redis-server on the PATH, the test fails.
func Start(tb testing.TB, opts ...Option) *Server {
	tb.Helper()
	s, err := start(tb, buildOptions(opts))
	if err != nil {
		tb.Fatalf("redisserver: %v", err)
	}
	return s
}

// start is Start for goroutines other than the test's.
func start(tb testing.TB, opts options) (*Server, error) {
	tb.Helper()
	s := &Server{tb: tb, opts: opts}
	if err := s.open(s.redisConf); err != nil {
		return nil, err
	}
	if opts.master != nil {
		if err := s.await("the replica to be in step with its master", func() (bool, error) {
			info, err := s.info("replication")
			return info["master_link_status"] == "up", err
		}); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// open prepares the directory, starts the process on a free port with the configuration that
// conf gives for it, and has the test clean it up.
func (s *Server) open(conf func() string) error {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		return fmt.Errorf("no redis-server on the PATH: run make test, or install redis-server 6.2 or newer (%w)", err)
	}
	s.binary = binary
	s.dir = s.tb.TempDir()
	// After TempDir, so that the process is gone when the directory is removed.
	s.tb.Cleanup(s.close)

	if err := os.Mkdir(s.dataDir(), 0o700); err != nil {
		return err
	}
	if s.opts.tls {
		if err := writeCertificates(s.dir); err != nil {
			return err
		}
	}
	if s.opts.users != nil {
		if err := os.WriteFile(s.aclFile(), []byte(s.aclText()), 0o600); err != nil {
			return err
		}
	}
	if s.opts.ownClock {
		if s.clock, err = newClock(s.dir); err != nil {
			return err
		}
		s.env = s.clock.env()
		s.tb.Cleanup(func() { _ = s.clock.file.Close() })
	}

	for range 5 {
		if s.port, err = takePort(); err != nil {
			return err
		}
		if s.opts.cluster {
			if s.busPort, err = takePort(); err != nil {
				return err
			}
		}
		if err = os.WriteFile(s.confFile(), []byte(conf()), 0o600); err != nil {
			return err
		}
		if err = s.launch(); !errors.Is(err, errPortClash) {
			return err
		}
		releasePort(s.port)
		releasePort(s.busPort)
		s.port, s.busPort = 0, 0
	}
	return err
}

// launch starts the process on the port that the server has, and waits until it answers.
func (s *Server) launch() error {
	logged := s.logSize()
	proc, err := startProcess(s.binary, s.logFile(), s.env, append([]string{s.confFile()}, s.args...)...)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.proc, s.counted = proc, 0
	s.mu.Unlock()

	err = s.await("redis-server to answer", func() (bool, error) {
		if !proc.running() {
			log := s.logFrom(logged)
			if strings.Contains(log, "Address already in use") {
				return false, permanent{fmt.Errorf("port %d: %w", s.port, errPortClash)}
			}
			return false, permanent{fmt.Errorf("redis-server ended while starting; its log:\n%s", tail(log, logLines))}
		}
		if _, err := s.askWithin(probeTimeout, "PING"); err != nil {
			return false, err // not listening yet, or LOADING
		}
		info, err := s.info("server")
		if err != nil {
			return false, err
		}
		if info["process_id"] != strconv.Itoa(proc.pid()) {
			return false, permanent{fmt.Errorf("port %d is answered by process %s: %w",
				s.port, info["process_id"], errPortClash)}
		}
		return true, nil
	})
	if err != nil {
		proc.kill()
	}
	return err
}

// permanent marks an error that waiting does not cure.
type permanent struct{ error }

func (e permanent) Unwrap() error { return e.error }

// await polls until the condition holds, and gives up with the last error seen.
func (s *Server) await(what string, condition func() (bool, error)) error {
	deadline := time.Now().Add(startTimeout)
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		ok, err := condition()
		if ok {
			return nil
		}
		if p := (permanent{}); errors.As(err, &p) {
			return p.error
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waited %v for %s: %w; the server's log:\n%s",
				startTimeout, what, err, tail(s.logFrom(0), logLines))
		}
		<-tick.C
	}
}

// Addr is the server's host:port, the same for as long as the test runs.
func (s *Server) Addr() string { return loopback(s.port) }

// Port is the server's port, the same for as long as the test runs.
func (s *Server) Port() int { return s.port }

// TLSConfig is what a client needs to connect to a server started [WithTLS], and nil for
// another.
func (s *Server) TLSConfig() *tls.Config {
	if !s.opts.tls {
		return nil
	}
	return clientTLS()
}

// Client connects to the server with go-redis's default options; opts may change them. The
// client is closed when the test ends.
func (s *Server) Client(opts ...func(*redis.Options)) *redis.Client {
	o := &redis.Options{Addr: s.Addr(), TLSConfig: s.TLSConfig()}
	for _, opt := range opts {
		opt(o)
	}
	client := redis.NewClient(o)
	s.tb.Cleanup(func() { _ = client.Close() }) // the test may have closed it
	return client
}

// Proxy puts a link that can be cut in front of the server. A client takes it with
//
//	server.Client(func(o *redis.Options) { o.Addr = proxy.Addr() })
func (s *Server) Proxy() *Proxy {
	s.tb.Helper()
	return NewProxy(s.tb, s.Addr())
}

// Keys are the names of all keys on the server.
func (s *Server) Keys() []string {
	s.tb.Helper()
	reply, err := s.ask("KEYS", "*")
	if err != nil {
		s.tb.Errorf("redisserver: list the keys of %s: %v", s.Addr(), err)
		return nil
	}
	list, _ := reply.([]any)
	keys := make([]string, len(list))
	for i := range list {
		keys[i], _ = list[i].(string)
	}
	return keys
}

// RunID is the id that the server took at its start: another one after each restart.
func (s *Server) RunID() string {
	s.tb.Helper()
	return s.field("server", "run_id")
}

// CommandsProcessed is how many commands the server has carried out since its start, those of
// this package not counted. Commands inside a script count beside the script itself, and
// replication counts on both sides.
func (s *Server) CommandsProcessed() int64 {
	s.tb.Helper()
	s.mu.Lock()
	own := s.counted // INFO does not yet count itself
	if s.opts.users != nil {
		own++ // but its AUTH is counted by then
	}
	s.mu.Unlock()
	text := s.field("stats", "total_commands_processed")
	if text == "" {
		return 0 // reported by field
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		s.tb.Errorf("redisserver: total_commands_processed of %s: %v", s.Addr(), err)
	}
	return n - own
}

// field is one field of INFO.
func (s *Server) field(section, name string) string {
	s.tb.Helper()
	info, err := s.info(section)
	if err != nil {
		s.tb.Errorf("redisserver: ask %s for %s: %v", s.Addr(), name, err)
	} else if info[name] == "" {
		s.tb.Errorf("redisserver: INFO of %s has no %s", s.Addr(), name)
	}
	return info[name]
}

func (s *Server) info(section string) (map[string]string, error) {
	reply, err := s.ask("INFO", section)
	if err != nil {
		return nil, err
	}
	text, _ := reply.(string)
	return infoFields(text), nil
}

// ask asks the server in the package's own name.
func (s *Server) ask(args ...string) (any, error) { return s.askWithin(startTimeout, args...) }

func (s *Server) askWithin(timeout time.Duration, args ...string) (any, error) {
	a := admin{addr: s.Addr(), tls: s.TLSConfig(), timeout: timeout}
	if s.opts.users != nil {
		a.user, a.password = adminUser, adminPassword
	}
	reply, counted, err := a.do(args...)
	s.mu.Lock()
	s.counted += counted
	s.mu.Unlock()
	return reply, err
}

func (s *Server) dataDir() string  { return filepath.Join(s.dir, "data") }
func (s *Server) confFile() string { return filepath.Join(s.dir, "redis.conf") }
func (s *Server) aclFile() string  { return filepath.Join(s.dir, "users.acl") }
func (s *Server) logFile() string  { return filepath.Join(s.dir, "redis.log") }
