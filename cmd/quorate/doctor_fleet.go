package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/quorum"
	"github.com/quorate/quorate/redlock"
)

// Checks of the fleet.
const (
	checkSize   = "size"
	checkSame   = "same-server"
	checkHosts  = "hosts"
	checkQuorum = "quorum"
	checkLease  = "test-lease"
)

// fleetFindings are those that take more than one node to see.
func (e *examination) fleetFindings(ctx context.Context, all []*patient, reports []redlock.NodeReport, checked error) []finding {
	f := &patient{exam: e, name: fleetWide}
	f.size(len(e.fleet.clients))
	f.sameServers(all)
	f.hosts(ctx, all)
	f.clocks(all)
	if f.quorate(all, reports, checked) {
		f.testLease(ctx)
	}
	return f.findings
}

func (p *patient) size(n int) {
	advice := "use three or five independent nodes"
	switch {
	case n == 1:
		p.found(warning, checkSize, advice, "is one node: when it is down, nobody acquires")
	case n == 2:
		p.found(warning, checkSize, advice, "is two nodes, both of which are needed: it fails more often than one")
	case n%2 == 0:
		p.found(warning, checkSize, "add a node or take one away", "is %d nodes: it endures the loss of %d, as %d nodes do", n, n-quorum.Size(n), n-1)
	default:
		p.found(good, checkSize, "", "is %d nodes, of which %d may be down", n, n-quorum.Size(n))
	}
}

// sameServers finds servers that are given twice, by whatever addresses.
func (p *patient) sameServers(all []*patient) {
	first := map[string]*patient{}
	before := len(p.findings)
	for _, q := range all {
		id := q.info["run_id"]
		if id == "" {
			continue
		}
		if other := first[id]; other != nil && other.node != q.node {
			p.found(bad, checkSame, "give each server once: the quorum is none", "%s and %s are one server, run_id %s", other.name, q.name, id)
			continue
		}
		first[id] = q
	}
	if len(p.findings) == before && len(first) > 1 {
		p.found(good, checkSame, "", "the nodes are different servers")
	}
}

// hosts finds nodes on one machine, as far as addresses tell.
func (p *patient) hosts(ctx context.Context, all []*patient) {
	ctx, cancel := p.ask(ctx)
	defer cancel()
	on := map[string][]string{} // by address
	nodes := map[string]map[int]bool{}
	for _, q := range all {
		for _, address := range machinesOf(ctx, q) {
			on[address] = append(on[address], q.name)
			if nodes[address] == nil {
				nodes[address] = map[int]bool{}
			}
			nodes[address][q.node] = true
		}
	}
	told := map[string]bool{}
	before := len(p.findings)
	for _, address := range slices.Sorted(maps.Keys(on)) {
		names := on[address]
		slices.Sort(names)
		list := strings.Join(names, ", ")
		if len(nodes[address]) < 2 || told[list] {
			continue
		}
		told[list] = true
		p.found(warning, checkHosts, "let them fail independently: a machine each; on one's own machine, for a trial, it is fine", "%s are on one machine, %s", list, address)
	}
	if len(p.findings) == before && len(on) > 1 {
		p.found(good, checkHosts, "", "no two nodes have one address")
	}
}

// machinesOf are the IP addresses of a node.
func machinesOf(ctx context.Context, p *patient) []string {
	if p.client == nil {
		return nil
	}
	if p.client.Options().Network == "unix" {
		return []string{"this one"}
	}
	host, _, err := net.SplitHostPort(p.client.Options().Addr)
	if err != nil {
		return nil
	}
	addresses, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return nil // reach has told
	}
	slices.Sort(addresses)
	return slices.Compact(addresses)
}

// clocks compares the nodes' clocks with each other before it accuses this machine's. That is no matter of
// safety: clocks that differ cost an acquisition a second round trip.
func (p *patient) clocks(all []*patient) {
	var known []offset
	var silent int
	for _, q := range all {
		switch {
		case q.clock != nil:
			known = append(known, *q.clock)
		case q.info != nil:
			silent++
		}
	}
	if len(known) == 0 {
		if silent > 0 {
			p.found(warning, checkClock, "see that NTP runs on all machines", "no node tells its time")
		}
		return
	}
	common := median(known)
	drift := quorum.Drift(p.exam.ttl)
	before := len(p.findings)
	if common.exceeds(drift) && len(known) > 1 {
		p.found(warning, checkClock, "run NTP here", "this machine's clock is %s of most nodes; the drift of a TTL of %s is %s", leadOf(-common.ahead), p.exam.ttl, drift)
	}
	for _, q := range all {
		if q.clock == nil {
			continue
		}
		reference, whose := common, "of most nodes"
		if len(known) < 3 {
			reference, whose = offset{}, "of this machine"
		}
		if off := (offset{q.clock.ahead - reference.ahead, q.clock.doubt + reference.doubt}); off.exceeds(drift) {
			p.findings = append(p.findings, finding{warning, q.name, checkClock,
				fmt.Sprintf("its clock is %s %s; the drift of a TTL of %s is %s", leadOf(off.ahead), whose, p.exam.ttl, drift),
				"run NTP there: tokens come from clocks, and an acquisition may take a second round trip"})
		}
	}
	if len(p.findings) == before {
		p.found(good, checkClock, "", "clocks differ by less than the drift of a TTL of %s, which is %s", p.exam.ttl, drift)
	}
}

// exceeds reports whether it is more than the drift for sure.
func (o offset) exceeds(drift time.Duration) bool { return o.ahead.Abs()-o.doubt > drift }

// median is that of what the offsets may be: between the median of the least and that of the most.
func median(all []offset) offset {
	middle := func(of func(offset) time.Duration) time.Duration {
		var values []time.Duration
		for _, o := range all {
			values = append(values, of(o))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	least := middle(func(o offset) time.Duration { return o.ahead - o.doubt })
	most := middle(func(o offset) time.Duration { return o.ahead + o.doubt })
	return offset{ahead: (least + most) / 2, doubt: (most - least) / 2}
}

func leadOf(d time.Duration) string {
	if d < 0 {
		return (-d).Round(10*time.Millisecond).String() + " behind that"
	}
	return d.Round(10*time.Millisecond).String() + " ahead of that"
}

// quorate tells whether enough nodes vote for a lease to be had.
func (p *patient) quorate(all []*patient, reports []redlock.NodeReport, checked error) bool {
	n := len(p.exam.fleet.clients)
	votes, quarantined := 0, time.Duration(0)
	for _, r := range reports {
		if r.Err == nil && r.Quarantine == 0 {
			votes++
		}
		quarantined = max(quarantined, r.Quarantine)
	}
	need := quorum.Size(n)
	switch {
	case votes >= need && votes < n:
		p.found(warning, checkQuorum, "see the nodes above", "%d of %d nodes vote, and %d are needed: %s more may fail", votes, n, need, moreMayFail(votes-need))
		return true
	case votes >= need:
		p.found(good, checkQuorum, "", "all %d nodes vote, and %d are needed", n, need)
		return true
	case quarantined > 0:
		p.found(bad, checkQuorum, "wait for "+brief(quarantined)+", and restart nodes one by one next time", "%d of %d nodes vote, and %d are needed: others restarted lately", votes, n, need)
		return false
	}
	if shards := slices.ContainsFunc(all, func(q *patient) bool { return q.inShards }); shards && !errors.Is(checked, redlock.ErrNoQuorum) {
		p.found(warning, checkQuorum, "see the shards above", "%d of %d nodes vote with all their shards, and each name finds a quorum all the same", votes, n)
		return true
	}
	p.found(bad, checkQuorum, "see the nodes above", "%d of %d nodes vote, and %d are needed: nobody acquires", votes, n, need)
	return false
}

// testLease has a lease, and sees that tokens grow. Of the name only fences are left, which expire.
func (p *patient) testLease(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 4*p.exam.timeout)
	defer cancel()
	var tokens [2]redlock.Token
	var acquired, extended, released time.Duration
	for i := range tokens {
		asked := time.Now()
		lease, err := p.exam.fleet.locker.TryAcquire(ctx, p.exam.name)
		if err != nil {
			p.found(bad, checkLease, "see the lines above", "cannot be acquired: %v", err)
			return
		}
		acquired = time.Since(asked)
		tokens[i] = lease.Token()
		asked = time.Now()
		failed := lease.Extend(ctx)
		extended = time.Since(asked)
		asked = time.Now()
		err = lease.Release(ctx)
		released = time.Since(asked)
		switch {
		case failed != nil:
			p.found(bad, checkLease, "see the lines above", "cannot be extended: %v", failed)
			return
		case err != nil:
			p.found(bad, checkLease, "see the lines above; it is free when its TTL of "+p.exam.ttl.String()+" ends", "cannot be released: %v", err)
			return
		}
	}
	if tokens[1] <= tokens[0] {
		p.found(bad, checkLease, "report this as a bug, with all that is above", "tokens do not grow: %d after %d", tokens[1], tokens[0])
		return
	}
	p.found(good, checkLease, "", "acquired in %s, extended in %s, released in %s; tokens grow", precise(acquired), precise(extended), precise(released))
}

func moreMayFail(n int) string {
	if n == 0 {
		return "no"
	}
	return strconv.Itoa(n)
}
