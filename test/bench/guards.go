package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"

	"github.com/quorate/quorate/internal/dbserver"
	"github.com/quorate/quorate/test/rig"
)

// update is the life of a process that updates the hot resource.
func (c *client) update(ctx context.Context, commands <-chan command) error {
	u, err := c.openUpdater(c.Count)
	if err != nil {
		return err
	}
	defer u.close()
	if err := u.update(ctx); err != nil { // connections and scripts
		return err
	}
	c.tell(event{Kind: readyEvent})
	cmd := <-commands

	ctx, stop := context.WithCancel(ctx) // without a deadline: see rueidisPeer
	defer stop()
	counts := make([]int, c.Workers+1) // the last is of all updates, those before the span included
	counts[c.Workers] = 1
	errs := make([]error, c.Workers)
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range c.Workers {
		all.Go(func() {
			done := 0
			for rig.Stamp() < cmd.End && ctx.Err() == nil {
				if err := u.update(ctx); err != nil {
					if ctx.Err() == nil {
						errs[i] = err
						stop()
					}
					break
				}
				done++
				if at := rig.Stamp(); at >= cmd.Begin && at < cmd.End {
					counts[i]++
				}
			}
			mu.Lock()
			defer mu.Unlock()
			counts[c.Workers] += done
		})
	}
	until(cmd.End)
	stop() // those that wait
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	c.tell(event{Kind: doneEvent, Counts: counts})
	return nil
}

// way is one of those that the row compares.
type way struct {
	store   kind
	library library
}

func (w way) String() string {
	if w.store == rowLock {
		return "SELECT … FOR UPDATE"
	}
	return fmt.Sprintf("%s, %s", w.library, w.store)
}

// guards measures safe updates of one hot resource: ours with the gate, the peers with the lock alone,
// and a database alone.
func guards(ctx context.Context, g *ground) (*finding, error) {
	f := &finding{How: "Everybody takes one unit off the same stock: quorate by Guard.Do with RedisGate.IncrBy or, in PostgreSQL, " +
		"SQLGate.Admit and an UPDATE in one transaction; in batches by Batcher.Do, which does that once for all who wait in a process; the peers by their lock and an INCRBY, which nothing protects from a holder " +
		"that comes late. quorate and redsync have five nodes, rueidislock one, with a majority of three keys; the store is a server of " +
		"its own. SELECT … FOR UPDATE is PostgreSQL alone, for data that are all in one database (which syncs nothing to the disk here). " +
		"Each run is checked: as much was taken off as updates returned."}
	ways := []way{{redisStore, quorate}, {redisStore, quorateBatch}, {redisStore, redsyncLib}, {redisStore, rueidisLib}}
	var postgres string
	switch db, err := g.database(); {
	case err == nil:
		postgres = (&url.URL{Scheme: "postgres", User: url.User(db.User()), Host: db.Addr(), Path: db.Database(), RawQuery: "sslmode=disable"}).String()
		ways = append(ways, way{postgresStore, quorate}, way{postgresStore, quorateBatch}, way{rowLock, ""})
	case errors.Is(err, dbserver.ErrNotInstalled):
		f.Notes = append(f.Notes, "PostgreSQL was not installed.")
	default:
		return nil, err
	}
	t := table{Head: []string{"processes × goroutines", "", "updates/s", "least share", "greatest share"}}
	for _, crowd := range []struct{ processes, workers int }{{1, 64}, {8, 8}, {8, 64}} {
		processes, workers := g.many(crowd.processes), g.many(crowd.workers)
		var all []series
		for _, w := range ways {
			all = append(all, series{w.String(), func(ctx context.Context) (sample, error) {
				return g.updates(ctx, w, postgres, processes, workers)
			}})
		}
		medians, err := g.inTurn(ctx, all...)
		label := fmt.Sprintf("%d × %d", crowd.processes, crowd.workers)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", label, err)
		}
		for _, w := range ways {
			m := medians[w.String()]
			t.add(label, w.String(), number(m["ops"]), number(m["least"]), number(m["most"]))
		}
		bound := 5.0
		if crowd.processes == 1 {
			bound = 20
		}
		redsync := medians[way{redisStore, redsyncLib}.String()]
		for _, w := range ways[:2] {
			own, label := medians[w.String()], label
			if w.library == quorateBatch {
				label += ", in batches"
			}
			f.Aims = append(f.Aims, atLeast(label+": updates per second, of redsync's", ratio(own["ops"], redsync["ops"]), bound, "×"))
			if crowd.processes > 1 {
				f.Aims = append(f.Aims,
					atLeast(label+": least share of a process, of its fair one", own["least"], 0.8, "×"),
					atMost(label+": greatest share of a process, of its fair one", own["most"], 1.2, "×"))
			}
		}
	}
	f.Tables = []table{t}
	return f, nil
}

// updates has processes update, once. It compares what they say with what is in the store.
func (g *ground) updates(ctx context.Context, w way, postgres string, processes, workers int) (sample, error) {
	taken, err := g.stocked(ctx, w.store, postgres)
	if err != nil {
		return nil, err
	}
	c, err := g.hire(ctx, copies(processes, clientConfig{
		times: g.times, Role: updating, Library: w.library, Store: w.store, Nodes: g.addrs(5),
		Redis: g.store.Addr(), Postgres: postgres, Workers: workers, Count: processes,
	})...)
	defer c.dismiss()
	if err != nil {
		return nil, err
	}
	if _, _, err := c.work(ctx, g.warm, g.span); err != nil {
		return nil, err
	}
	var returned, counted int
	var byProcess []int
	for _, m := range c.members {
		counts := m.told(doneEvent)[0].Counts
		returned += counts[workers]
		byProcess = append(byProcess, sum(counts[:workers]))
	}
	counted = sum(byProcess)
	off, err := taken()
	if err != nil {
		return nil, err
	}
	// One that was broken off at the end may have been carried out, by each worker.
	if off < int64(returned) || off > int64(returned+processes*workers) {
		return nil, fmt.Errorf("%d updates returned, and %d were taken off", returned, off)
	}
	fair := ratio(float64(counted), float64(processes))
	return sample{
		"ops":   float64(counted) / g.span.Seconds(),
		"least": ratio(float64(slices.Min(byProcess)), fair),
		"most":  ratio(float64(slices.Max(byProcess)), fair),
	}, nil
}
