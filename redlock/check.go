package redlock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/quorum"
)

// A NodeReport is what is known of one node.
type NodeReport struct {
	Node       string // address
	Up         bool   // it answered when it was last asked
	Version    string
	RunID      string
	Uptime     time.Duration // when it was checked; whole seconds
	Role       string
	Replicas   int
	Quarantine time.Duration // > 0: its votes do not count for this long
	Latency    time.Duration // how long its answer took, or failed to come, a new connection included; of a cluster, the slowest shard's
	// ClockOffset is the node's wall clock minus ours, as far as one round trip can tell.
	ClockOffset time.Duration
	Warnings    []string // what weakens it
	Err         error    // what makes it unfit, or why it could not be asked
	// Shards are the masters of a node that is a Redis Cluster, with what is above for each. Then
	// the node itself has Up, Quarantine and Err, which sum them up, and the role "cluster".
	Shards []NodeReport
}

// Check asks every node who it is and how it is set up. The error joins what makes the fleet
// unfit: ErrSameServer, ErrReplica, and ErrNoQuorum when too few nodes answer, where nodes are clusters
// for the names of some slot. Warnings are no
// error: an evicting maxmemory-policy, connected replicas, a clock that is off by more than the
// drift of the TTL, a node that refuses INFO.
func (l *Locker) Check(ctx context.Context) ([]NodeReport, error) {
	ctx, end, err := l.begin(ctx, "check", "fleet")
	if err != nil {
		return nil, err
	}
	defer end()
	ready := l.fleet.ready(ctx)
	reports := make([]NodeReport, len(l.fleet.nodes))
	done := make(chan int, len(reports))
	for i, n := range l.fleet.nodes {
		go func() {
			if c := l.fleet.lanes[i].cluster; c != nil {
				reports[i] = l.reportCluster(ctx, c)
			} else {
				reports[i] = l.report(ctx, n)
			}
			done <- i
		}()
	}
	for range reports {
		<-done
	}
	errs := []error{ready}
	for _, r := range reports {
		if r.Err != nil {
			errs = append(errs, &NodeError{Node: r.Node, Err: r.Err})
		}
	}
	if !l.fleet.serves(reports) {
		errs = append(errs, ErrNoQuorum)
	}
	return reports, errors.Join(errs...)
}

// serves reports whether every name finds a quorum: whether for each slot enough nodes have a server
// that is fit.
func (f *fleet) serves(reports []NodeReport) bool {
	up := 0
	spread := map[*cluster]map[string]bool{} // clusters of which some shards are fit, and which
	for i, r := range reports {
		c := f.lanes[i].cluster
		switch {
		case r.Err == nil:
			up++
		case c != nil && len(r.Shards) > 0:
			spread[c] = map[string]bool{}
			for _, s := range r.Shards {
				spread[c][s.Node] = s.Err == nil
			}
		}
	}
	need := quorum.Size(len(reports))
	if len(spread) == 0 || up >= need {
		return up >= need
	}
	for slot := range slotCount {
		fit := up
		for c, shards := range spread {
			if shards[c.server(slotKeys()[slot])] {
				fit++
			}
		}
		if fit < need {
			return false
		}
	}
	return true
}

// reportCluster asks each shard.
func (l *Locker) reportCluster(ctx context.Context, c *cluster) NodeReport {
	report := NodeReport{Node: c.lane.node.name, Role: "cluster"}
	shards := c.all()
	if !c.met.Load() || len(shards) == 0 {
		report.Err = c.reason()
		return report
	}
	report.Shards = make([]NodeReport, len(shards))
	var asked sync.WaitGroup
	for i, s := range shards {
		asked.Go(func() { report.Shards[i] = l.report(ctx, s.node) })
	}
	asked.Wait()
	report.Up = true
	var errs []error
	for _, r := range report.Shards {
		report.Up = report.Up && r.Up
		report.Quarantine = max(report.Quarantine, r.Quarantine)
		report.Latency = max(report.Latency, r.Latency)
		if r.Err != nil {
			errs = append(errs, &NodeError{Node: r.Node, Err: r.Err})
		}
	}
	report.Err = errors.Join(errs...)
	return report
}

func (l *Locker) report(ctx context.Context, n *node) NodeReport {
	report := NodeReport{Node: n.name}
	dials := n.dials.Load()
	begin := l.settings.clock.Elapsed()
	info, err := l.askInfo(ctx, n)
	report.Latency = l.settings.clock.Elapsed() - begin
	if err != nil {
		report.Up, report.Err = infoRefused(err), err
		if report.Up {
			report.Err = nil
			report.Warnings = []string{"refuses INFO (" + err.Error() + "), so the restart rule cannot be applied; allow +info to its user"}
		}
		return report
	}
	n.learn(dials, info) // it may have restarted unnoticed
	report.Up = true
	report.Version, report.RunID, report.Uptime = info.version, info.runID, info.uptime
	report.Role, report.Replicas = info.role, info.replicas
	report.Quarantine, report.Err = n.quarantine(), n.fault()
	report.Warnings = info.warnings()
	if !info.clock.IsZero() {
		report.ClockOffset = info.offset(l.settings.clock)
		if drift := quorum.Drift(l.settings.lease.ttl); report.ClockOffset.Abs() > drift {
			report.Warnings = append(report.Warnings, "clock is off by "+report.ClockOffset.Round(time.Millisecond).String()+"; run NTP on nodes and clients")
		}
	}
	return report
}

// askInfo asks a node who it is, for at most the time that a connection may take.
func (l *Locker) askInfo(ctx context.Context, n *node) (nodeInfo, error) {
	return bounded(ctx, l, func(ctx context.Context) (nodeInfo, error) { return readInfo(ctx, n.client) })
}

// bounded asks a client something, and waits for at most the time that a connection may take: a client in
// default options ignores the deadline.
func bounded[T any](ctx context.Context, l *Locker, ask func(ctx context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, max(l.settings.nodeTimeout, connectTimeout), ErrNodeTimeout)
	defer cancel()
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	l.background.Go(func() {
		value, err := ask(ctx)
		done <- outcome{value, err}
	})
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
