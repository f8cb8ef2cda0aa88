package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quorate/quorate/redlock"
)

// An examination is one run of the doctor.
type examination struct {
	fleet       *fleet
	timeout     time.Duration // for one answer
	prefix      string
	name        string // of the test lease
	ttl         time.Duration
	maxTTL      time.Duration
	trustsDisks bool
}

// A patient is one server: a node, or a shard of a node that is a cluster.
type patient struct {
	exam     *examination
	name     string
	node     int // which it is, or is a part of
	inShards bool
	client   *redis.Client
	report   *redlock.NodeReport // of the Locker, nil if it has none

	info     map[string]string // what INFO tells; nil if it tells nothing
	clock    *offset           // nil if it tells no time
	findings []finding
}

// An offset is how far a server's wall clock is ahead of this machine's, and how far that may be wrong,
// because it is not known when during a round trip the server looked at it.
type offset struct{ ahead, doubt time.Duration }

func (p *patient) found(v verdict, check, advice, format string, args ...any) {
	p.findings = append(p.findings, finding{v, p.name, check, fmt.Sprintf(format, args...), advice})
}

func (e *examination) run(ctx context.Context) *diagnosis {
	reports, checked := e.fleet.locker.Check(ctx)
	var mu sync.Mutex
	patients := make([][]*patient, len(e.fleet.clients))
	var examined sync.WaitGroup
	for i, client := range e.fleet.clients {
		examined.Go(func() {
			ps, closeAll := e.admit(ctx, i, client)
			defer closeAll()
			var all sync.WaitGroup
			for _, p := range ps {
				p.report = reportOf(reports, p)
				if p.client != nil {
					all.Go(func() { p.examine(ctx) })
				}
			}
			all.Wait()
			mu.Lock()
			patients[i] = ps
			mu.Unlock()
		})
	}
	examined.Wait()

	d := &diagnosis{Verdict: good, Findings: []finding{}}
	var all []*patient
	for _, ps := range patients {
		all = append(all, ps...)
	}
	for _, p := range all {
		d.add(p.findings...)
	}
	d.add(e.fleetFindings(ctx, all, reports, checked)...)
	return d
}

// reportOf finds what the Locker knows of a patient.
func reportOf(reports []redlock.NodeReport, p *patient) *redlock.NodeReport {
	if p.node >= len(reports) {
		return nil
	}
	r := &reports[p.node]
	if !p.inShards {
		return r
	}
	for i := range r.Shards {
		if r.Shards[i].Node == p.name {
			return &r.Shards[i]
		}
	}
	return nil
}

// admit makes clients that mind time limits and do not try again, as those of the fleet need not.
func (e *examination) admit(ctx context.Context, i int, client redis.UniversalClient) ([]*patient, func()) {
	switch c := client.(type) {
	case *redis.Client:
		own := newImpatient(c.Options(), e.timeout)
		return []*patient{{exam: e, name: addressOf(c), node: i, client: own}}, func() { _ = own.Close() }
	case *redis.ClusterClient:
		options := *c.Options()
		options.ContextTimeoutEnabled, options.MaxRedirects = true, -1
		options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = e.timeout, e.timeout, e.timeout, e.timeout
		own := redis.NewClusterClient(&options)
		return e.shards(ctx, i, own)
	}
	return []*patient{{exam: e, name: addressOf(client), node: i}}, func() {}
}

// newImpatient is a client that gives up soon.
func newImpatient(of *redis.Options, timeout time.Duration) *redis.Client {
	options := *of
	options.Dialer = nil // that of the copied client has its time limits
	options.ContextTimeoutEnabled, options.MaxRetries, options.DialerRetries = true, -1, 1
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = timeout, timeout, timeout, timeout
	options.MinIdleConns, options.PoolSize = 0, 4
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(&options)
}

// shards are the masters of a cluster.
func (e *examination) shards(ctx context.Context, i int, own *redis.ClusterClient) ([]*patient, func()) {
	closeAll := func() { _ = own.Close() }
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	var mu sync.Mutex
	var ps []*patient
	err := own.ForEachMaster(ctx, func(_ context.Context, master *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		ps = append(ps, &patient{
			exam: e, name: master.Options().Addr, node: i, inShards: true,
			client: newImpatient(master.Options(), e.timeout),
		})
		return nil
	})
	for _, p := range ps {
		before := closeAll
		closeAll = func() { before(); _ = p.client.Close() }
	}
	if err != nil || len(ps) == 0 {
		lost := &patient{exam: e, name: "cluster " + own.Options().Addrs[0], node: i}
		found, advice := unreachable(err, e.timeout)
		if strings.Contains(strings.ToLower(fmt.Sprint(err)), "cluster support disabled") {
			found, advice = "it is no Redis Cluster", "its URL begins with redis:// or rediss://, without cluster+"
		}
		lost.found(bad, checkReach, advice, "%s", found)
		return append(ps, lost), closeAll
	}
	return ps, closeAll
}

func randomText() string { return strings.ToLower(rand.Text()[:16]) }
