package redlock

import (
	"context"
	"errors"
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
	// ClockOffset is the node's wall clock minus ours, as far as one round trip can tell.
	ClockOffset time.Duration
	Warnings    []string // what weakens it
	Err         error    // what makes it unfit, or why it could not be asked
}

// Check asks every node who it is and how it is set up. The error joins what makes the fleet
// unfit: ErrSameServer, ErrReplica, and ErrNoQuorum when too few nodes answer. Warnings are no
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
			reports[i] = l.report(ctx, n)
			done <- i
		}()
	}
	for range reports {
		<-done
	}
	errs := []error{ready}
	up := 0
	for _, r := range reports {
		if r.Err == nil {
			up++
		} else {
			errs = append(errs, &NodeError{Node: r.Node, Err: r.Err})
		}
	}
	if up < quorum.Size(len(reports)) {
		errs = append(errs, ErrNoQuorum)
	}
	return reports, errors.Join(errs...)
}

func (l *Locker) report(ctx context.Context, n *node) NodeReport {
	report := NodeReport{Node: n.name}
	dials := n.dials.Load()
	info, err := l.askInfo(ctx, n)
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
		report.ClockOffset = info.clock.Sub(l.settings.clock.Now())
		if drift := quorum.Drift(l.settings.lease.ttl); report.ClockOffset.Abs() > drift {
			report.Warnings = append(report.Warnings, "clock is off by "+report.ClockOffset.Round(time.Millisecond).String()+"; run NTP on nodes and clients")
		}
	}
	return report
}

// askInfo asks a node who it is, for at most the time that a connection may take.
func (l *Locker) askInfo(ctx context.Context, n *node) (nodeInfo, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, max(l.settings.nodeTimeout, connectTimeout), ErrNodeTimeout)
	defer cancel()
	type outcome struct {
		info nodeInfo
		err  error
	}
	done := make(chan outcome, 1)
	l.background.Go(func() { // a client in default options ignores the deadline
		info, err := readInfo(ctx, n.client)
		done <- outcome{info, err}
	})
	select {
	case o := <-done:
		return o.info, o.err
	case <-ctx.Done():
		return nodeInfo{}, context.Cause(ctx)
	}
}
