package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v3"

	"github.com/quorate/quorate/redlock"
)

// fleetFlags are those of all commands: which nodes, and how they are used.
func fleetFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "nodes", Sources: cli.EnvVars("QUORATE_NODES"), Usage: "`URL`s of the nodes, separated by commas: redis://[user:password@]host[:port][/db], rediss:// for TLS, unix:///path; cluster+redis:// and cluster+rediss:// for a node that is a Redis Cluster"},
		&cli.StringFlag{Name: "prefix", Value: redlock.DefaultKeyPrefix, Sources: cli.EnvVars("QUORATE_PREFIX"), Usage: "`TEXT` before the names in keys: the same as the service's"},
		&cli.DurationFlag{Name: "max-ttl", Value: redlock.DefaultMaxTTL, Sources: cli.EnvVars("QUORATE_MAX_TTL"), Usage: "`TIME` that is the longest TTL of any client of the fleet: the same as the service's"},
		&cli.BoolFlag{Name: "trust-persistence", Sources: cli.EnvVars("QUORATE_TRUST_PERSISTENCE"), Usage: "nodes lose nothing in a crash (appendfsync always), so votes count at once after a restart"},
		&cli.StringFlag{Name: "tls-ca", Sources: cli.EnvVars("QUORATE_TLS_CA"), Usage: "PEM `FILE` of the authorities that signed the nodes' certificates; default: the system's"},
		&cli.StringFlag{Name: "tls-cert", Sources: cli.EnvVars("QUORATE_TLS_CERT"), Usage: "PEM `FILE` of a client certificate"},
		&cli.StringFlag{Name: "tls-key", Sources: cli.EnvVars("QUORATE_TLS_KEY"), Usage: "PEM `FILE` of its key"},
		&cli.StringFlag{Name: "identity", Sources: cli.EnvVars("QUORATE_IDENTITY"), Usage: "`NAME` of this process towards others", DefaultText: "host:pid"},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "table", Usage: "`FORMAT` of what is printed: table, or json"},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "tell on stderr what the library logs"},
	}
}

// A fleet is the nodes of one command, and a Locker over them.
type fleet struct {
	clients []redis.UniversalClient
	locker  *redlock.Locker
}

// openFleet makes the clients and the Locker that the flags describe. It asks no node.
func (c *console) openFleet(cmd *cli.Command, opts ...redlock.Option) (*fleet, error) {
	f := &fleet{}
	security, err := tlsOf(cmd)
	if err != nil {
		return nil, err
	}
	for _, text := range cmd.StringSlice("nodes") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		client, err := newClient(text, security)
		if err != nil {
			f.close()
			return nil, err
		}
		f.clients = append(f.clients, client)
	}
	if len(f.clients) == 0 {
		return nil, usagef("no nodes: give their URLs with --nodes or in QUORATE_NODES, as redis://10.0.0.1:6379,redis://10.0.0.2:6379,redis://10.0.0.3:6379")
	}
	logger := slog.New(slog.DiscardHandler)
	if cmd.Bool("verbose") {
		logger = slog.New(slog.NewTextHandler(c.err, nil))
	}
	all := []redlock.Option{
		redlock.WithNodeTimeout(nodeTimeout(cmd)),
		redlock.WithKeyPrefix(cmd.String("prefix")),
		redlock.WithMaxTTL(cmd.Duration("max-ttl")),
		redlock.WithLogger(logger),
	}
	if cmd.Bool("trust-persistence") {
		all = append(all, redlock.WithTrustPersistence())
	}
	if cmd.IsSet("identity") {
		all = append(all, redlock.WithIdentity(cmd.String("identity")))
	}
	f.locker, err = redlock.New(f.clients, append(all, opts...)...)
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// nodeTimeout is how long a node may take to answer: 0 is the default of package redlock. Tests have more time.
var nodeTimeout = func(*cli.Command) time.Duration { return 0 }

// explain words why too few nodes voted. A Locker that has given a node up does not tell why that could not be
// reached, so that is asked once more, and in the plainest way.
func (f *fleet) explain(e *redlock.QuorumError) string {
	if !errors.Is(e, redlock.ErrNoQuorum) {
		return inWords(e)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var mu sync.Mutex
	var asked sync.WaitGroup
	reasons := map[string]string{}
	for _, client := range f.clients {
		asked.Go(func() {
			if err := client.Ping(ctx).Err(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				reasons[addressOf(client)] = err.Error()
			}
		})
	}
	asked.Wait()
	var nodes []string
	for _, node := range e.Nodes {
		nodes = append(nodes, node.Node+": "+orElse(reasons[node.Node], inWords(node.Err)))
	}
	if len(nodes) == 0 { // the time was over before the Locker had given any up
		for _, node := range slices.Sorted(maps.Keys(reasons)) {
			nodes = append(nodes, node+": "+reasons[node])
		}
	}
	return fmt.Sprintf("%s %q: too few nodes can be asked: %d of the %d votes needed (%s); quorate doctor tells more",
		e.Op, e.Name, e.Votes, e.Quorum, strings.Join(nodes, "; "))
}

// longestFarewell is how long nodes have to hear of releases when a command ends: as long as for any answer.
const longestFarewell = redlock.DefaultNodeTimeout

// close ends the Locker first, which still tells nodes of releases. A node that hangs is not waited for.
func (f *fleet) close() {
	told := make(chan struct{})
	go func() {
		defer close(told)
		if f.locker != nil {
			_ = f.locker.Close()
		}
	}()
	patience := time.NewTimer(longestFarewell)
	defer patience.Stop()
	select {
	case <-told:
	case <-patience.C:
	}
	for _, client := range f.clients { // which ends what still waits for an answer
		_ = client.Close()
	}
	<-told
}

// newClient makes a client from a URL. Errors do not repeat the URL: there may be a password in it.
func newClient(text string, security *tls.Config) (redis.UniversalClient, error) {
	rest, isCluster := strings.CutPrefix(text, "cluster+")
	if isCluster {
		options, err := redis.ParseClusterURL(rest)
		if err != nil {
			return nil, badURL(text, err)
		}
		secure(&options.TLSConfig, security)
		impatient(&options.MaxRetries, &options.DialerRetries, &options.DialTimeout, &options.ReadTimeout, &options.WriteTimeout)
		return redis.NewClusterClient(options), nil
	}
	options, err := redis.ParseURL(text)
	if err != nil {
		return nil, badURL(text, err)
	}
	secure(&options.TLSConfig, security)
	impatient(&options.MaxRetries, &options.DialerRetries, &options.DialTimeout, &options.ReadTimeout, &options.WriteTimeout)
	return redis.NewClient(options), nil
}

// impatient sets what the URL does not. A Locker has time limits and retries of its own; the client's would
// only hide why a node cannot be reached, and delay the end, which waits for clients that wait for nodes.
func impatient(retries, dialRetries *int, timeouts ...*time.Duration) {
	if *retries == 0 {
		*retries = -1 // none
	}
	if *dialRetries == 0 {
		*dialRetries = 1 // in all
	}
	for _, timeout := range timeouts {
		if *timeout == 0 {
			*timeout = 2 * time.Second
		}
	}
}

// badURL words what is wrong with a URL. A password with characters that mean something there may be in any part of
// it, and of what the parser says.
func badURL(text string, err error) error {
	u, unread := url.Parse(text)
	switch {
	case unread == nil && u.Host != "" && !strings.Contains(text, "@"):
		return usagef("node %q: %w", text, err)
	case unread != nil, u.Host == "", strings.Contains(err.Error(), "@"):
		err = errors.New("in a password, write %2C for a comma, %40 for @, %2F for /, %3A for :, %23 for #, %25 for %")
	}
	return usagef("a node of --nodes is no URL as redis://host:6379 (it is not repeated here, because it may hold a password): %w", err)
}

// secure adds the files of the flags to what a rediss:// URL gives.
func secure(of **tls.Config, security *tls.Config) {
	if *of == nil || security == nil {
		return
	}
	config := (*of).Clone()
	config.RootCAs, config.Certificates = security.RootCAs, security.Certificates
	*of = config
}

func tlsOf(cmd *cli.Command) (*tls.Config, error) {
	ca, cert, key := cmd.String("tls-ca"), cmd.String("tls-cert"), cmd.String("tls-key")
	if ca == "" && cert == "" && key == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, usagef("--tls-ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, usagef("--tls-ca: %s has no certificate in PEM", ca)
		}
	}
	if (cert == "") != (key == "") {
		return nil, usagef("--tls-cert and --tls-key go together")
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, usagef("--tls-cert: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// addressOf is a node as the reports of redlock call it.
func addressOf(client redis.UniversalClient) string {
	switch c := client.(type) {
	case *redis.Client:
		return c.Options().Addr
	case *redis.ClusterClient:
		return fmt.Sprintf("cluster %s", c.Options().Addrs[0])
	}
	return "node"
}
