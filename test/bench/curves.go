package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/redlock"
)

// curves measures this library alone, with more of everything.
func curves(ctx context.Context, g *ground) (*finding, error) {
	f := &finding{How: "quorate alone, one round, names of their own. Memory is what a node has in use more after so many names were acquired and " +
		"released, by name: what is left is the fence, for 24 hours. Links are proxies that hold each byte for the delay, in each " +
		"direction; a round trip is the median of PINGs over such a link."}
	for _, part := range []func(context.Context, *ground) (table, []aim, error){overNodes, overGoroutines, overNames, overDelays} {
		t, aims, err := part(ctx, g)
		if err != nil {
			return nil, err
		}
		f.Tables = append(f.Tables, t)
		f.Aims = append(f.Aims, aims...)
	}
	return f, nil
}

// once measures a load in half of the usual time: there are many points.
func (g *ground) once(ctx context.Context, nodes []string, workers int) (*outcome, error) {
	if err := g.clear(ctx); err != nil {
		return nil, err
	}
	c, err := openQuorate(nodes, g.times)
	if err != nil {
		return nil, err
	}
	defer c.close()
	return load{workers: workers, warm: g.warm, span: g.span / 2}.run(ctx, c)
}

func overNodes(ctx context.Context, g *ground) (table, []aim, error) {
	t := table{Caption: "Nodes:", Head: []string{"nodes", "1 goroutine: cycle p50, µs", "p99, µs", "256 goroutines: cycles/s"}}
	for _, n := range g.nodes {
		one, err := g.once(ctx, g.addrs(n), 1)
		if err != nil {
			return t, nil, err
		}
		many, err := g.once(ctx, g.addrs(n), g.many(manyWorkers))
		if err != nil {
			return t, nil, err
		}
		t.add(fmt.Sprint(n), number(us(quantile(one.trips, 0.5))), number(us(quantile(one.trips, 0.99))), number(many.ops))
	}
	return t, nil, nil
}

func overGoroutines(ctx context.Context, g *ground) (table, []aim, error) {
	t := table{Caption: "Goroutines, five nodes:", Head: []string{"goroutines", "cycles/s", "cycle p50, ms", "p99, ms"}}
	for _, n := range g.goroutines {
		o, err := g.once(ctx, g.addrs(5), n)
		if err != nil {
			return t, nil, err
		}
		t.add(thousands(int64(n)), number(o.ops), number(ms(quantile(o.trips, 0.5))), number(ms(quantile(o.trips, 0.99))))
	}
	return t, nil, nil
}

func overNames(ctx context.Context, g *ground) (table, []aim, error) {
	t := table{Caption: "Names, one node:", Head: []string{"names", "memory per name, B", "acquired and released, names/s"}}
	for _, n := range g.names {
		if err := g.clear(ctx); err != nil {
			return t, nil, err
		}
		perName, rate, err := g.remember(ctx, n)
		if err != nil {
			return t, nil, err
		}
		t.add(thousands(int64(n)), number(perName), number(rate))
	}
	return t, nil, g.clear(ctx)
}

// remember acquires and releases n names, and says what is left of them on the node.
func (g *ground) remember(ctx context.Context, n int) (perName, rate float64, err error) {
	c, err := openQuorate(g.addrs(1), g.times)
	if err != nil {
		return 0, 0, err
	}
	defer c.close()
	if h, err := c.lock(ctx, "first"); err != nil { // scripts and buffers are not those of the names
		return 0, 0, err
	} else if err := h.unlock(ctx); err != nil {
		return 0, 0, err
	}
	before, err := g.memory(ctx)
	if err != nil {
		return 0, 0, err
	}
	const workers = manyWorkers
	begun := time.Now()
	errs := make([]error, workers)
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := w; i < n && errs[w] == nil && ctx.Err() == nil; i += workers {
				h, err := c.lock(ctx, "name-"+strconv.Itoa(i))
				if err == nil {
					err = h.unlock(ctx)
				}
				if errors.Is(err, redlock.ErrNoQuorum) { // a node that is late for once is sent it again
					err = nil
				}
				errs[w] = err
			}
		})
	}
	all.Wait()
	took := time.Since(begun)
	for _, err := range errs {
		if err != nil {
			return 0, 0, err
		}
	}
	after, err := g.memory(ctx)
	return (after - before) / float64(n), float64(n) / took.Seconds(), err
}

// memory is what the first node has in use.
func (g *ground) memory(ctx context.Context) (float64, error) {
	fields, err := infoOf(ctx, g.admins[0], "memory")
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(fields["used_memory"], 64)
}

// overDelays has links that are slow: all of them, and a minority.
func overDelays(ctx context.Context, g *ground) (table, []aim, error) {
	t := table{Caption: "Links, five nodes, one goroutine:", Head: []string{"delay in each direction", "round trip, ms", "acquire p50, ms", "of a round trip"}}
	links := g.fleet[:5].Links()
	defer func() {
		for _, l := range links {
			l.Close()
		}
	}()
	var aims []aim
	measure := func(label string, delays func(node int) time.Duration) error {
		for i, l := range links {
			l.Delay(delays(i))
		}
		addrs := make([]string, len(links))
		for i, l := range links {
			addrs[i] = l.Addr()
		}
		// The first is always one of the quorum's slowest.
		trip, err := ping(ctx, addrs[0], g.many(50))
		if err != nil {
			return err
		}
		o, err := g.once(ctx, addrs, 1)
		if err != nil {
			return err
		}
		p50 := quantile(o.locks, 0.5)
		times := ratio(float64(p50), float64(trip))
		t.add(label, number(ms(trip)), number(ms(p50)), number(times)+"×")
		if delays(0) > 0 {
			aims = append(aims, atMost("links with a delay of "+label+": acquire p50, of a round trip of the quorum's slowest", times, 1.25, "×"))
		}
		return nil
	}
	for _, d := range g.delays {
		if err := measure(elapsed(d), func(int) time.Duration { return d }); err != nil {
			return t, nil, err
		}
	}
	slowest := g.delays[len(g.delays)-1]
	less := slowest / 10
	err := measure(fmt.Sprintf("%s, two of them %s", elapsed(less), elapsed(slowest)), func(node int) time.Duration {
		if node >= 3 {
			return slowest
		}
		return less
	})
	return t, aims, err
}

// ping is the median of n round trips.
func ping(ctx context.Context, addr string, n int) (time.Duration, error) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = client.Close() }()
	var all []time.Duration
	for range n + 1 {
		begun := time.Now()
		if err := client.Ping(ctx).Err(); err != nil {
			return 0, err
		}
		all = append(all, time.Since(begun))
	}
	all = all[1:] // the first makes the connection
	slices.Sort(all)
	return quantile(all, 0.5), nil
}
