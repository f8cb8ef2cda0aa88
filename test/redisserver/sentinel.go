package redisserver

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// MasterName is the name under which a [Sentinel] knows its master.
const MasterName = "mymaster"

// Sentinel is a redis-sentinel that watches one master and promotes a replica when it is told to:
// see [Sentinel.Failover]. It would do so by itself when the master has been dead for long. It is
// not quick to, because on a loaded machine a master may be slow, and not dead.
type Sentinel struct {
	server *Server
}

// StartSentinel starts a sentinel and returns once it has found the master and the replicas,
// so that a failover can begin. Its quorum is one: itself.
func StartSentinel(tb testing.TB, master *Server, replicas ...*Server) *Sentinel {
	tb.Helper()
	s := &Server{tb: tb, args: []string{"--sentinel"}, opts: options{tls: master.opts.tls}}
	if err := s.open(func() string { return s.sentinelConf(master) }); err != nil {
		tb.Fatalf("redisserver: start a sentinel: %v", err)
	}
	err := s.await(fmt.Sprintf("the sentinel to find %d replicas", len(replicas)), func() (bool, error) {
		reply, err := s.ask("SENTINEL", "REPLICAS", MasterName)
		if err != nil {
			return false, err
		}
		return eligible(reply) == len(replicas), nil
	})
	if err != nil {
		tb.Fatalf("redisserver: %v", err)
	}
	return &Sentinel{server: s}
}

// eligible counts the replicas that the sentinel could promote: reached, and in step.
func eligible(reply any) int {
	n := 0
	list, _ := reply.([]any)
	for _, replica := range list {
		pairs, _ := replica.([]any)
		fields := map[string]string{}
		for i := 0; i+1 < len(pairs); i += 2 {
			key, _ := pairs[i].(string)
			fields[key], _ = pairs[i+1].(string)
		}
		if fields["flags"] == "slave" && fields["master-link-status"] == "ok" {
			n++
		}
	}
	return n
}

func (s *Server) sentinelConf(master *Server) string {
	conf := s.redisConf()
	// A sentinel knows fewer settings than a server, and refuses the others.
	lines := []string{}
	for line := range strings.Lines(conf) {
		switch key, _, _ := strings.Cut(line, " "); key {
		case "save", "appendonly", "repl-diskless-sync-delay":
		default:
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	if s.opts.tls {
		// What the sentinel says to the master, it says as a replica would.
		lines = append(lines, "tls-replication yes")
	}
	lines = append(lines, fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 1", MasterName, master.Port()))
	if master.opts.users != nil {
		lines = append(lines,
			"sentinel auth-user "+MasterName+" "+adminUser,
			"sentinel auth-pass "+MasterName+" "+adminPassword)
	}
	lines = append(lines,
		"sentinel down-after-milliseconds "+MasterName+" 60000",
		"sentinel failover-timeout "+MasterName+" 2000",
		"sentinel parallel-syncs "+MasterName+" 1")
	return strings.Join(lines, "\n") + "\n"
}

// Addr is the sentinel's own host:port.
func (s *Sentinel) Addr() string { return s.server.Addr() }

// MasterAddr is the host:port that the sentinel gives for the master now.
func (s *Sentinel) MasterAddr() string {
	s.server.tb.Helper()
	reply, err := s.server.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MasterName)
	pair, _ := reply.([]any)
	if err != nil || len(pair) != 2 {
		s.server.tb.Errorf("redisserver: ask the sentinel for its master: %v, %v", reply, err)
		return ""
	}
	return net.JoinHostPort(fmt.Sprint(pair[0]), fmt.Sprint(pair[1]))
}

// Failover has the sentinel promote a replica, whether the master is dead or not, and returns when
// it gives the replica for the master.
func (s *Sentinel) Failover() {
	s.server.tb.Helper()
	before := s.MasterAddr()
	if err := s.server.await("the sentinel to promote a replica", func() (bool, error) {
		if s.MasterAddr() != before {
			return true, nil
		}
		// It refuses where it is at it already, and where it has not heard of the replica lately.
		_, err := s.server.ask("SENTINEL", "FAILOVER", MasterName)
		return false, err
	}); err != nil {
		s.server.tb.Errorf("redisserver: %v", err)
	}
}

// Client follows the master through failovers, with go-redis's default options; opts may
// change them. The client is closed when the test ends.
func (s *Sentinel) Client(opts ...func(*redis.FailoverOptions)) *redis.Client {
	o := &redis.FailoverOptions{
		MasterName:    MasterName,
		SentinelAddrs: []string{s.Addr()},
		TLSConfig:     s.server.TLSConfig(),
	}
	for _, opt := range opts {
		opt(o)
	}
	client := redis.NewFailoverClient(o)
	s.server.tb.Cleanup(func() { _ = client.Close() }) // the test may have closed it
	return client
}
