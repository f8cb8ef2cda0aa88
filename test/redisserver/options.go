package redisserver

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// Option changes how a server is started.
type Option func(*options)

type options struct {
	settings []string // lines for the configuration file, in the order given
	tls      bool
	users    []string // ACL lines; nil means no ACL
	master   *Server
	ownClock bool
	cluster  bool // a master of a cluster, which is yet to be formed
}

// WithConfig adds one setting of redis.conf, its value written as in that file:
//
//	redisserver.WithConfig("maxmemory-policy", "allkeys-lru")
//	redisserver.WithConfig("client-output-buffer-limit", "pubsub 1mb 1mb 60")
func WithConfig(key, value string) Option {
	return func(o *options) { o.settings = append(o.settings, key+" "+value) }
}

// WithAppendOnlyAlways gives the server a memory that survives kill -9: every write is on
// disk before it is answered.
func WithAppendOnlyAlways() Option {
	return func(o *options) {
		o.settings = append(o.settings, "appendonly yes", "appendfsync always")
	}
}

// WithReplicaOf makes the server a replica of master. Start returns once the replica is in
// step with it. A replica of a server with TLS has TLS as well.
func WithReplicaOf(master *Server) Option {
	return func(o *options) { o.master = master }
}

// WithTLS has the server speak TLS and nothing else, with a certificate for 127.0.0.1 and
// localhost. Clients get what they need from [Server.TLSConfig].
func WithTLS() Option {
	return func(o *options) { o.tls = true }
}

// WithACL sets the server's users, each line as in a Redis ACL file:
//
//	redisserver.WithACL(
//		"user default off",
//		"user app on >secret resetkeys ~quorate:* -@all +evalsha",
//	)
//
// The package adds a user of its own beside them, for its own questions.
func WithACL(lines ...string) Option {
	return func(o *options) {
		// Not nil, even without lines: an ACL file without users still is one.
		o.users = append(append(make([]string, 0, len(o.users)+len(lines)), o.users...), lines...)
	}
}

func buildOptions(opts []Option) options {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	// A replica needs its master's certificates to reach it, and has no use for a plain port.
	o.tls = o.tls || o.master != nil && o.master.opts.tls
	return o
}

// redisConf is the text of the server's configuration file. Later lines win in Redis, so the
// caller's settings come last.
func (s *Server) redisConf() string {
	lines := []string{
		"bind 127.0.0.1",
		"daemonize no",
		"dir " + strconv.Quote(s.dataDir()),
		`save ""`,
		"appendonly no",
		// A replica that syncs should not wait the five seconds in which more might come.
		"repl-diskless-sync-delay 0",
	}
	port := "port " + strconv.Itoa(s.port)
	if s.opts.tls {
		port = "port 0"
		lines = append(lines,
			"tls-port "+strconv.Itoa(s.port),
			"tls-cert-file "+strconv.Quote(filepath.Join(s.dir, certFile)),
			"tls-key-file "+strconv.Quote(filepath.Join(s.dir, keyFile)),
			"tls-ca-cert-file "+strconv.Quote(filepath.Join(s.dir, caFile)),
			"tls-auth-clients no",
		)
	}
	lines = append(lines, port)
	if s.opts.users != nil {
		lines = append(lines, "aclfile "+strconv.Quote(s.aclFile()))
	}
	if m := s.opts.master; m != nil {
		lines = append(lines, fmt.Sprintf("replicaof 127.0.0.1 %d", m.port))
		if m.opts.tls {
			lines = append(lines, "tls-replication yes")
		}
		if m.opts.users != nil {
			lines = append(lines, "masteruser "+adminUser, "masterauth "+adminPassword)
		}
	}
	if s.opts.cluster {
		lines = append(lines, s.clusterConf()...)
	}
	lines = append(lines, s.opts.settings...)
	return strings.Join(lines, "\n") + "\n"
}

// The user that the package adds to a server with an ACL. The password guards nothing: the
// server is a test's, on loopback, for some seconds.
const (
	adminUser     = "redisserver-admin"
	adminPassword = "redisserver-admin"
)

func (s *Server) aclText() string {
	own := fmt.Sprintf("user %s on >%s ~* &* +@all", adminUser, adminPassword)
	return strings.Join(append([]string{own}, s.opts.users...), "\n") + "\n"
}
