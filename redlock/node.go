package redlock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/quorate/quorate/internal/quorum"
)

// A node is one independent Redis master, as this process knows it: whose answers it may
// believe, and from when on.
//
// Restart rule. A node that restarted may have forgotten locks, so its votes do not count until
// it has been up for the fleet's maximum TTL ("make an instance, after a crash, unavailable for
// at least a bit more than the max TTL we use"). An answer counts only if the connection that
// carried it was checked. Every dial bumps dials before its connection can carry anything; a
// batch's answers are used only when no dial has happened since the last check began; a check
// reads the run_id and the uptime. So an answer of a process that was never checked cannot
// count: its connection was dialled after the check, or the check saw another run_id.
type node struct {
	index  int
	name   string // address, for people
	client redis.UniversalClient
	// attributes are those of the node's metrics.
	attributes metric.MeasurementOption
	dials      atomic.Uint64
	heard      atomic.Int64 // when it last answered, on the fleet's clock
	fleet      *fleet

	mu         sync.Mutex
	checked    bool
	checkedAt  uint64 // dials at the last check
	info       nodeInfo
	countsFrom time.Duration // votes count from this time of the clock on
	blind      bool          // INFO is not to be had
	offset     time.Duration // of its wall clock from ours, if told
	told       bool
}

func newNode(index int, client redis.UniversalClient, f *fleet) *node {
	n := &node{index: index, name: nodeName(index, client), client: client, fleet: f}
	n.attributes = metric.WithAttributeSet(attribute.NewSet(attrNode.String(n.name)))
	if _, ok := client.(*redis.ClusterClient); !ok { // which dials nothing itself
		client.AddHook(dialCounter{&n.dials})
	}
	return n
}

// succeed begins with what was known of the same address under another client.
func (n *node) succeed(old *node) {
	old.mu.Lock()
	info, countsFrom, blind := old.info, old.countsFrom, old.blind
	old.mu.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.info, n.countsFrom, n.blind = info, countsFrom, blind
	n.heard.Store(old.heard.Load())
}

func nodeName(index int, client redis.UniversalClient) string {
	switch c := client.(type) {
	case *redis.Client:
		if c.Options().Addr != "" {
			return c.Options().Addr
		}
	case *redis.ClusterClient:
		if seeds := c.Options().Addrs; len(seeds) > 0 {
			return "cluster " + seeds[0]
		}
	}
	return fmt.Sprintf("node %d", index)
}

// dialCounter counts the connections of a client, each before it can carry anything.
type dialCounter struct{ dials *atomic.Uint64 }

func (h dialCounter) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err == nil {
			h.dials.Add(1)
		}
		return conn, err
	}
}

func (h dialCounter) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (h dialCounter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// isChecked reports whether every connection that exists was checked. A replica is checked each
// time, because it may be promoted without a new connection.
func (n *node) isChecked() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.checked && n.checkedAt == n.dials.Load() && !n.info.isReplica()
}

// check asks the node who it is, unless that is known of every connection. It returns an error
// when the node cannot be asked; then no answer of it may be used.
func (n *node) check(ctx context.Context) error {
	if n.isChecked() {
		return nil
	}
	const tries = 5 // the check itself may dial
	for range tries {
		dials := n.dials.Load()
		info, err := readInfo(ctx, n.client)
		switch {
		case err == nil:
			n.learn(dials, info)
		case infoRefused(err):
			n.goBlind(dials, err)
		default:
			return fmt.Errorf("check of run_id and uptime: %w", err)
		}
		if n.dials.Load() == dials {
			return nil
		}
	}
	return errors.New("its connections are replaced faster than they can be checked")
}

// probe asks the node who it is whatever is known, and so tells whether it answers at all.
func (n *node) probe(ctx context.Context) error {
	n.mu.Lock()
	n.checked = false
	n.mu.Unlock()
	return n.check(ctx)
}

// learn applies the restart rule to what the node says of itself.
func (n *node) learn(dials uint64, info nodeInfo) {
	now := n.fleet.clock.Elapsed()
	n.mu.Lock()
	known := n.info.runID
	switch {
	case n.info.runID != info.runID:
		n.countsFrom = n.quarantineEnd(now, known != "", info)
		if known != "" && n.wasBeside(now, info) {
			n.countsFrom = n.fleet.quarantineFrom(now)
		}
	case n.info.isReplica() && !info.isReplica(), info.promoted && !n.info.promoted:
		info.promoted = true // and it missed writes until a moment ago
		n.countsFrom = n.quarantineEnd(now, true, info)
	}
	n.info, n.checked, n.checkedAt, n.blind = info, true, dials, false
	n.heard.Store(int64(now))
	if !info.clock.IsZero() {
		n.offset, n.told = info.offset(n.fleet.clock), true
	}
	wait := n.countsFrom - now
	n.mu.Unlock()

	n.fleet.identify(n)
	switch log := n.fleet.logger; {
	case known != "" && known != info.runID:
		log.Warn("redlock: node restarted; its votes do not count for a while", "node", n.name, "wait", wait)
	case known == "" && wait > 0:
		log.Info("redlock: node is up for less than the maximum TTL; its votes do not count yet", "node", n.name, "wait", wait)
	}
	if known != info.runID {
		info.warn(n.fleet.logger, n.name)
	}
}

// quarantineEnd tells from when on the votes of a process that was not known before count.
//
// A process that was always a master has been one for its uptime. One that was promoted (it has
// a second replication id), or that replaces a known one and does not say, may be a replica that
// missed writes until a moment ago, so its uptime says nothing.
func (n *node) quarantineEnd(now time.Duration, replaces bool, info nodeInfo) time.Duration {
	if n.fleet.trustPersistence {
		return 0
	}
	maxTTL := n.fleet.maxTTL
	full := maxTTL + quorum.Drift(maxTTL)
	if info.promoted || (replaces && !info.replicationKnown) {
		return now + full
	}
	// uptime_in_seconds is cut off to whole seconds of a cached clock.
	if up := info.uptime - time.Second; up < full {
		return now + full - max(0, up)
	}
	return 0
}

// wasBeside reports whether the server that has taken the place of the known one ran beside it: then it was never
// told of the locks there, and its uptime says nothing. A second is for what the clocks differ by.
func (n *node) wasBeside(now time.Duration, info nodeInfo) bool {
	return now-info.uptime+time.Second < time.Duration(n.heard.Load())
}

func (n *node) goBlind(dials uint64, err error) {
	n.mu.Lock()
	first := !n.blind
	if first && n.info.runID != "" {
		// It answered before, so this may be another process, of which nothing is known.
		n.countsFrom = n.quarantineEnd(n.fleet.clock.Elapsed(), true, nodeInfo{})
	}
	n.checked, n.checkedAt, n.blind = true, dials, true
	n.mu.Unlock()
	if first {
		n.fleet.logger.Warn("redlock: node refuses INFO; it is used without the restart rule; allow +info to its user", "node", n.name, "error", err)
	}
}

// quarantineFrom is the clock's time from when on the votes of a server count that may have lost its
// memory at this moment.
func (f *fleet) quarantineFrom(now time.Duration) time.Duration {
	if f.trustPersistence {
		return 0
	}
	return now + f.maxTTL + quorum.Drift(f.maxTTL)
}

// memoryFrom is the clock's time from when on the node surely remembers all that may matter: from when
// on its votes count, where it could be asked.
func (n *node) memoryFrom() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.checked {
		return n.fleet.quarantineFrom(n.fleet.clock.Elapsed())
	}
	return n.countsFrom
}

// quarantine is how long the node's votes still do not count.
func (n *node) quarantine() time.Duration {
	n.mu.Lock()
	from := n.countsFrom
	n.mu.Unlock()
	if from == 0 {
		return 0
	}
	return max(0, from-n.fleet.clock.Elapsed())
}

// clockOffset is the node's wall clock minus ours as of the last check, if the node told it.
func (n *node) clockOffset() (time.Duration, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.offset, n.told
}

// fault is what makes the node unfit as a node, or nil.
func (n *node) fault() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.info.isReplica() {
		return fmt.Errorf("%w (role %q); give the address of an independent master", ErrReplica, n.info.role)
	}
	return nil
}

func (n *node) runID() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.info.runID
}

// infoRefused tells a server that will never answer INFO from one that cannot right now.
func infoRefused(err error) bool {
	if errors.Is(err, errNoRunID) {
		return true
	}
	var reply redis.Error
	if !errors.As(err, &reply) {
		return false
	}
	msg := reply.Error()
	if strings.HasPrefix(msg, "NOPERM") {
		return true
	}
	for _, lacks := range []string{"unknown command", "unsupported", "not supported"} {
		if strings.HasPrefix(msg, "ERR") && strings.Contains(msg, lacks) {
			return true
		}
	}
	return false
}
