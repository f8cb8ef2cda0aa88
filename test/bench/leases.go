package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/quorate/quorate/redlock"
)

// holdMany is the life of a process that holds many leases.
func (c *client) holdMany(ctx context.Context, commands <-chan command) error {
	own, err := openQuorate(c.Nodes, c.times)
	if err != nil {
		return err
	}
	defer own.close()
	if h, err := own.lock(ctx, "first"); err != nil { // connections, scripts, buffers
		return err
	} else if err := h.unlock(ctx); err != nil {
		return err
	}
	c.tell(event{Kind: readyEvent})
	<-commands

	leases := make([]*redlock.Lease, c.Count)
	before, begun := weigh(), time.Now()
	if err := acquireAll(ctx, own.locker, leases); err != nil {
		return err
	}
	took := time.Since(begun)
	held := weigh()
	c.tell(event{Kind: "held", Figure: map[string]float64{
		"heap": held.heap - before.heap, "goroutines": held.goroutines - before.goroutines, "took": took.Seconds(),
	}})
	pause(ctx, c.Held)
	after, lost := weigh(), 0
	for _, lease := range leases {
		if lease.Err() != nil {
			lost++
		}
	}
	c.tell(event{Kind: doneEvent, Figure: map[string]float64{
		"cpu": after.cpu - held.cpu, "heap": after.heap - before.heap, "lost": float64(lost),
	}})
	return nil
}

// weight is what this process takes at a moment.
type weight struct{ heap, goroutines, cpu float64 }

func weigh() weight {
	runtime.GC()
	runtime.GC() // what finalizers and pools let go of goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return weight{float64(m.HeapAlloc), float64(runtime.NumGoroutine()), cpuSeconds()}
}

func acquireAll(ctx context.Context, locker *redlock.Locker, leases []*redlock.Lease) error {
	const workers = 256
	var all sync.WaitGroup
	errs := make([]error, workers)
	for w := range workers {
		all.Go(func() {
			for i := w; i < len(leases) && errs[w] == nil; i += workers {
				leases[i], errs[w] = locker.Acquire(ctx, "lease-"+strconv.Itoa(i), redlock.WithAutoExtend(true))
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// manyLeases measures a process that holds many leases for a while.
func manyLeases(ctx context.Context, g *ground) (*finding, error) {
	const nodes = 3
	if err := g.clear(ctx); err != nil {
		return nil, err
	}
	if err := g.settle(ctx, g.leaseTTL); err != nil {
		return nil, err
	}
	lasts := time.Duration(g.leaseTTLs) * g.leaseTTL
	c, err := g.hire(ctx, clientConfig{
		times: times{TTL: g.leaseTTL, MaxTTL: g.leaseTTL}, Role: holdingMany, Nodes: g.addrs(nodes), Count: g.leases, Held: lasts,
	})
	defer c.dismiss()
	if err != nil {
		return nil, err
	}
	m := c.members[0]
	m.Tell(command{Op: "go"})
	if err := c.await(ctx, "held", 1, 2*patience); err != nil {
		return nil, err
	}
	before, err := g.nodesCPU(ctx, nodes)
	if err != nil {
		return nil, err
	}
	if err := c.await(ctx, doneEvent, 1, lasts+patience); err != nil {
		return nil, err
	}
	after, err := g.nodesCPU(ctx, nodes)
	if err != nil {
		return nil, err
	}
	held, done := m.told("held")[0].Figure, m.told(doneEvent)[0].Figure
	n := float64(g.leases)
	perLease := held["heap"] / n
	t := table{Head: []string{"leases", "acquired in", "heap per lease", "at the end", "goroutines more", "lost", "CPU of the process", "CPU of all nodes"}}
	t.add(thousands(int64(g.leases)), elapsed(time.Duration(held["took"]*float64(time.Second))), number(perLease)+" B", number(done["heap"]/n)+" B",
		number(held["goroutines"]), number(done["lost"]), number(done["cpu"])+" s", number(after-before)+" s")
	return &finding{
		How: fmt.Sprintf("One process, three nodes, a TTL of %v (and so a maximum TTL of as much). %s leases are acquired by 256 goroutines and then "+
			"extended automatically for %v. Heap is what is reachable after garbage collection, more than before the first of them; CPU is "+
			"that of the time in which they were held.", g.leaseTTL, thousands(int64(g.leases)), lasts),
		Aims: []aim{
			atMost("heap per lease", perLease, 1024, "B"),
			atMost("leases lost", done["lost"], 0, ""),
			atMost("goroutines per lease", max(0, held["goroutines"])/n, 0.01, ""),
		},
		Tables: []table{t},
	}, nil
}

// nodesCPU is how many seconds the first n nodes have computed.
func (g *ground) nodesCPU(ctx context.Context, n int) (float64, error) {
	all := 0.0
	for i := range n {
		fields, err := infoOf(ctx, g.admins[i], "cpu")
		if err != nil {
			return 0, err
		}
		for _, field := range []string{"used_cpu_user", "used_cpu_sys"} {
			v, err := strconv.ParseFloat(fields[field], 64)
			if err != nil {
				return 0, fmt.Errorf("read %s of a node: %w", field, err)
			}
			all += v
		}
	}
	return all, nil
}
