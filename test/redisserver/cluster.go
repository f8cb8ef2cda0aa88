package redisserver

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Slots is how many hash slots a cluster has.
const Slots = 16384

// Cluster is a Redis Cluster of masters without replicas. Each has an equal share of the slots, in
// order. It goes on with the shards that are left when one is down (cluster-require-full-coverage
// no), and a master that restarts, with its data or without, keeps its slots.
type Cluster struct {
	tb      testing.TB
	Masters Fleet
	ids     []string
}

// StartCluster starts a cluster of n masters and returns once all of them serve.
func StartCluster(tb testing.TB, n int, opts ...Option) *Cluster {
	tb.Helper()
	c := &Cluster{tb: tb}
	c.Masters = StartFleet(tb, n, append([]Option{func(o *options) { o.cluster = true }}, opts...)...)
	if err := c.form(); err != nil {
		tb.Fatalf("redisserver: form a cluster of %d: %v", n, err)
	}
	return c
}

// StartClusters starts a number of clusters at the same time.
func StartClusters(tb testing.TB, clusters, n int, opts ...Option) []*Cluster {
	tb.Helper()
	fleet := StartFleet(tb, clusters*n, append([]Option{func(o *options) { o.cluster = true }}, opts...)...)
	all := make([]*Cluster, clusters)
	errs := make([]error, clusters)
	var formed sync.WaitGroup
	for i := range all {
		all[i] = &Cluster{tb: tb, Masters: fleet[i*n : (i+1)*n]}
		formed.Go(func() { errs[i] = all[i].form() })
	}
	formed.Wait()
	if err := errors.Join(errs...); err != nil {
		tb.Fatalf("redisserver: form %d clusters of %d: %v", clusters, n, err)
	}
	return all
}

func (c *Cluster) form() error {
	n := len(c.Masters)
	// Masters tell each other what they know more often the shorter the time is.
	if err := c.nodeTimeout("2000"); err != nil {
		return err
	}
	for i, m := range c.Masters {
		id, err := m.ask("CLUSTER", "MYID")
		if err != nil {
			return err
		}
		c.ids = append(c.ids, fmt.Sprint(id))
		first, last := i*Slots/n, (i+1)*Slots/n-1
		if _, err := m.ask("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(last)); err != nil {
			return err
		}
		// Without it all have epoch 0, and take a while to agree on who is who.
		if _, err := m.ask("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1)); err != nil {
			return err
		}
		if i > 0 {
			_, err := m.ask("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(c.Masters[0].port), strconv.Itoa(c.Masters[0].busPort))
			if err != nil {
				return err
			}
		}
	}
	for _, m := range c.Masters {
		if err := c.await(m); err != nil {
			return err
		}
	}
	return c.nodeTimeout(nodeTimeout)
}

// nodeTimeout is for how many milliseconds a master may be silent before the others take it for dead:
// so long that on a loaded machine none is that is only slow. One that is dead refuses connections.
const nodeTimeout = "60000"

func (c *Cluster) nodeTimeout(ms string) error {
	for _, m := range c.Masters {
		if _, err := m.ask("CONFIG", "SET", "cluster-node-timeout", ms); err != nil {
			return err
		}
	}
	return nil
}

// await waits until a master serves, and knows who has the other slots.
func (c *Cluster) await(m *Server) error {
	return m.await("the cluster to be complete", func() (bool, error) {
		reply, err := m.ask("CLUSTER", "INFO")
		if err != nil {
			return false, err
		}
		text, _ := reply.(string)
		info := infoFields(text)
		return info["cluster_state"] == "ok" && info["cluster_slots_ok"] == strconv.Itoa(Slots) &&
			info["cluster_known_nodes"] == strconv.Itoa(len(c.Masters)), nil
	})
}

// AwaitComplete waits until every master serves and all slots are served.
func (c *Cluster) AwaitComplete() {
	c.tb.Helper()
	for _, m := range c.Masters {
		if err := c.await(m); err != nil {
			c.tb.Errorf("redisserver: %v", err)
		}
	}
}

// Client connects to the cluster with go-redis's default options; opts may change them. The client
// is closed when the test ends.
func (c *Cluster) Client(opts ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	o := &redis.ClusterOptions{TLSConfig: c.Masters[0].TLSConfig()}
	for _, m := range c.Masters {
		o.Addrs = append(o.Addrs, m.Addr())
	}
	for _, opt := range opts {
		opt(o)
	}
	client := redis.NewClusterClient(o)
	c.tb.Cleanup(func() { _ = client.Close() }) // the test may have closed it
	return client
}

// Slot is the hash slot of a key, as the cluster itself computes it.
func (c *Cluster) Slot(key string) int {
	c.tb.Helper()
	reply, err := c.Masters[0].ask("CLUSTER", "KEYSLOT", key)
	slot, ok := reply.(int64)
	if err != nil || !ok {
		c.tb.Errorf("redisserver: ask for the slot of %q: %v, %v", key, reply, err)
	}
	return int(slot)
}

// Owner is the master that the slot belonged to when the cluster was formed.
func (c *Cluster) Owner(slot int) *Server {
	for i := range c.Masters {
		if slot < (i+1)*Slots/len(c.Masters) {
			return c.Masters[i]
		}
	}
	return nil
}

// MoveSlot moves a slot with its keys, as an operator's tool does it. What is given runs in between:
// the first when the slot is marked, and keys that are not there any more are asked for at the other
// master; the second when the keys have gone, but not yet the slot.
func (c *Cluster) MoveSlot(slot int, from, to *Server, between ...func()) {
	c.tb.Helper()
	step := func(s *Server, args ...string) any {
		reply, err := s.ask(args...)
		if err != nil {
			c.tb.Errorf("redisserver: move slot %d: %v", slot, err)
		}
		return reply
	}
	run := func(i int) {
		if i < len(between) {
			between[i]()
		}
	}
	number := strconv.Itoa(slot)
	step(to, "CLUSTER", "SETSLOT", number, "IMPORTING", c.id(from))
	step(from, "CLUSTER", "SETSLOT", number, "MIGRATING", c.id(to))
	run(0)
	for !c.tb.Failed() {
		keys, _ := step(from, "CLUSTER", "GETKEYSINSLOT", number, "100").([]any)
		if len(keys) == 0 {
			break
		}
		args := []string{"MIGRATE", "127.0.0.1", strconv.Itoa(to.port), "", "0", "5000", "KEYS"}
		for _, key := range keys {
			args = append(args, fmt.Sprint(key))
		}
		step(from, args...)
	}
	run(1)
	for _, s := range append([]*Server{to, from}, c.Masters...) {
		step(s, "CLUSTER", "SETSLOT", number, "NODE", c.id(to))
	}
}

func (c *Cluster) id(s *Server) string {
	for i, m := range c.Masters {
		if m == s {
			return c.ids[i]
		}
	}
	return ""
}

// clusterConf is what the configuration file of a cluster's master has besides. The file that the
// server keeps of its cluster is not among its data, so that a restart without data is that and no more.
func (s *Server) clusterConf() []string {
	return []string{
		"cluster-enabled yes",
		"cluster-port " + strconv.Itoa(s.busPort),
		"cluster-announce-ip 127.0.0.1",
		"cluster-config-file " + strconv.Quote(filepath.Join(s.dir, "nodes.conf")),
		"cluster-node-timeout " + nodeTimeout,
		"cluster-require-full-coverage no",
	}
}
