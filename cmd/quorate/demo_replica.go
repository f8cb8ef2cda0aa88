package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
	"github.com/quorate/quorate/scheduler"
)

const (
	demoProducts = 4
	demoWorkers  = 2 // of each replica
	demoWork     = 800 * time.Millisecond
)

// A demoReplica is one replica of the service, on a machine of its own as far as the nodes can see.
type demoReplica struct {
	name   string
	host   *redlocktest.Host
	locker *redlock.Locker
	close  func() // of its clients
	cancel context.CancelFunc
}

// start starts a replica, which ends with ctx, or when it is killed.
func (d *demo) start(ctx context.Context) error {
	d.mu.Lock()
	d.started++
	r := &demoReplica{name: fmt.Sprintf("replica-%d", d.started)}
	d.mu.Unlock()
	r.host = d.nodes.Host(r.name)
	clients := r.host.Clients()
	r.close = func() {
		for _, client := range clients {
			_ = client.Close()
		}
	}
	quiet := slog.New(slog.DiscardHandler)
	var err error
	r.locker, err = redlock.New(clients, redlock.WithIdentity(r.name), redlock.WithLogger(quiet),
		redlock.WithTTL(demoTTL), redlock.WithMaxTTL(2*demoTTL))
	if err != nil {
		return err
	}
	elector, err := leader.New(r.locker, "billing", leader.WithTTL(demoTTL), leader.WithLogger(quiet),
		leader.WithLabels(map[string]string{"version": "demo"}))
	if err != nil {
		return err
	}
	jobs, err := scheduler.New(r.locker, scheduler.WithTTL(demoTTL), scheduler.WithIdentity(r.name), scheduler.WithLogger(quiet),
		scheduler.WithDrainTimeout(0))
	if err != nil {
		return err
	}
	err = jobs.Add("report", "@every 3s", func(ctx context.Context, run scheduler.Run) error {
		d.say("%s runs the job report of %s", r.name, run.Scheduled.Format(time.TimeOnly))
		pause(ctx, demoWork)
		return context.Cause(ctx)
	})
	if err != nil {
		return err
	}
	ctx, r.cancel = context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() {
		_ = elector.Run(ctx, func(ctx context.Context, term leader.Term) error { return d.lead(ctx, r, term) })
	})
	all.Go(func() { _ = jobs.Run(ctx) })
	for range demoWorkers {
		all.Go(func() { r.work(ctx) })
	}
	d.say("%s starts", r.name)
	d.ended.Go(func() {
		all.Wait()
		_ = r.locker.Close()
		r.close()
	})
	return nil
}

func (d *demo) lead(ctx context.Context, r *demoReplica, term leader.Term) error {
	d.mu.Lock()
	d.leader = r
	d.mu.Unlock()
	d.say("%s leads, term %d", r.name, term.Number)
	<-ctx.Done()
	d.mu.Lock()
	if d.leader == r {
		d.leader = nil
	}
	d.mu.Unlock()
	return nil
}

// work has leases of products, one at a time.
func (r *demoReplica) work(ctx context.Context) {
	for ctx.Err() == nil {
		product := fmt.Sprintf("sku:%d", rand.IntN(demoProducts)+1)
		err := r.locker.Do(ctx, product, func(ctx context.Context, _ *redlock.Lease) error {
			pause(ctx, rand.N(demoWork))
			return nil
		})
		if err != nil {
			pause(ctx, demoWork)
			continue
		}
		pause(ctx, rand.N(demoWork))
	}
}

// kill ends the replica so that no node hears of it: what it holds runs out.
func (r *demoReplica) kill() {
	r.host.Partition()
	r.cancel()
	r.close()
}
