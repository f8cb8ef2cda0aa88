package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/scheduler"
)

const stormReplicas = 3

// schedule is the life of a replica whose jobs are all due in the same second.
func (c *client) schedule(ctx context.Context, commands <-chan command) error {
	own, err := openQuorate(c.Nodes, c.times)
	if err != nil {
		return err
	}
	defer own.close()
	var mu sync.Mutex
	lags := map[string][]int64{}
	told := map[string]float64{} // what became of ticks, as this replica saw it
	opts := []scheduler.Option{
		scheduler.WithLogger(slog.New(slog.DiscardHandler)),
		scheduler.WithObserver(func(e scheduler.Event) {
			what := string(e.Outcome)
			if e.Reason != "" {
				what += " (" + string(e.Reason) + ")"
			}
			mu.Lock()
			defer mu.Unlock()
			told[what]++
		}),
	}
	if c.TTL != 0 {
		opts = append(opts, scheduler.WithTTL(c.TTL))
	}
	sched, err := scheduler.New(own.locker, opts...)
	if err != nil {
		return err
	}
	for i := range c.Count {
		err := sched.AddAt(fmt.Sprintf("job-%d", i), c.At, func(_ context.Context, run scheduler.Run) error {
			lag := time.Since(run.Scheduled)
			mu.Lock()
			defer mu.Unlock()
			lags[run.Job] = append(lags[run.Job], int64(lag))
			return nil
		})
		if err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- sched.Run(ctx) }()
	c.tell(event{Kind: readyEvent})

	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for waiting := true; waiting; {
		select {
		case <-commands:
			waiting = false
		case <-ticker.C:
			mu.Lock()
			n := len(lags)
			mu.Unlock()
			c.tell(event{Kind: "ran", Counts: []int{n}})
		case err := <-ended:
			return fmt.Errorf("the scheduler has ended: %w", err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		return err
	}
	for names := range slices.Chunk(slices.Sorted(maps.Keys(lags)), 1000) {
		chunk := map[string][]int64{}
		for _, name := range names {
			chunk[name] = lags[name]
		}
		c.tell(event{Kind: "lags", Lags: chunk})
	}
	c.tell(event{Kind: doneEvent, Figure: told})
	return nil
}

// storm measures a crontab of which everything is due at once.
func storm(ctx context.Context, g *ground) (*finding, error) {
	const nodes = 3
	if err := g.clear(ctx); err != nil {
		return nil, err
	}
	// A whole second, as crontabs have it.
	at := time.Now().Add(g.jobsIn).Truncate(time.Second)
	c, err := g.hire(ctx, copies(stormReplicas, clientConfig{times: g.times, Role: scheduling, Nodes: g.addrs(nodes), Count: g.jobs, At: at})...)
	defer c.dismiss()
	if err != nil {
		return nil, err
	}
	// What they say to each other when they start is no part of the ticks.
	calm := time.Until(at.Add(-500 * time.Millisecond))
	if calm <= 0 {
		return nil, fmt.Errorf("the replicas were not ready before the jobs were due, %v after they were started", g.jobsIn)
	}
	if !pause(ctx, calm) {
		return nil, context.Cause(ctx)
	}
	before, err := g.calls(ctx, nodes)
	if err != nil {
		return nil, err
	}
	err = c.until(ctx, "all jobs to be run", time.Until(at)+2*patience, func() bool {
		return c.ran() >= g.jobs
	})
	if err != nil && (ctx.Err() != nil || c.missing() != nil) { // that not all were run is a figure
		return nil, err
	}
	// So that a second run would be seen as well.
	if !pause(ctx, time.Second) {
		return nil, context.Cause(ctx)
	}
	after, err := g.calls(ctx, nodes)
	if err != nil {
		return nil, err
	}
	for _, m := range c.members {
		m.Tell(command{Op: "stop"})
	}
	if err := c.await(ctx, doneEvent, 1, 2*patience); err != nil {
		return nil, err
	}
	return g.stormFinding(c, since(before, after), nodes), nil
}

// ran is how many jobs all replicas say that they have run.
func (c *crew) ran() int {
	n := 0
	for _, m := range c.members {
		if told := m.told("ran"); len(told) > 0 {
			n += told[len(told)-1].Counts[0]
		}
	}
	return n
}

func (g *ground) stormFinding(c *crew, called calls, nodes int) *finding {
	runs := map[string]int{}
	var lags []time.Duration
	var byReplica []int
	for _, m := range c.members {
		n := 0
		for _, e := range m.told("lags") {
			for job, all := range e.Lags {
				runs[job] += len(all)
				n += len(all)
				for _, lag := range all {
					lags = append(lags, time.Duration(lag))
				}
			}
		}
		byReplica = append(byReplica, n)
	}
	slices.Sort(lags)
	wrong := g.jobs - len(runs)
	for _, n := range runs {
		if n != 1 {
			wrong++
		}
	}
	var notes []string
	if wrong > 0 {
		for i, m := range c.members {
			told := m.told(doneEvent)[0].Figure
			note := fmt.Sprintf("Ticks, as replica %d saw them:", i)
			for _, what := range slices.Sorted(maps.Keys(told)) {
				note += fmt.Sprintf(" %s: %s;", what, number(told[what]))
			}
			notes = append(notes, note)
		}
	}
	ticks := float64(g.jobs * nodes)
	p50, p99, last := quantile(lags, 0.5), quantile(lags, 0.99), quantile(lags, 1)
	t := table{Head: []string{"runs", "by replica", "lag p50, ms", "lag p99, ms", "last, ms", "scripts per node and tick", "commands per node and tick"}}
	t.add(thousands(int64(len(lags))), fmt.Sprint(byReplica), number(ms(p50)), number(ms(p99)), number(ms(last)),
		number(called.scripts()/ticks), number(called.total()/ticks))
	return &finding{
		How: fmt.Sprintf("%s jobs are due in the same second, on three replicas, which are processes, and three nodes; a run does nothing. "+
			"The lag goes from the scheduled time to the call of the job's function. Scripts and commands (those within scripts included) are "+
			"counted from half a second before the ticks to a second after the last run.", thousands(int64(g.jobs))),
		Aims: []aim{
			atMost("jobs that were not run exactly once", float64(wrong), 0, ""),
			atMost("lag p99", ms(p99), 1000, "ms"),
		},
		Tables: []table{t},
		Notes:  notes,
	}
}
