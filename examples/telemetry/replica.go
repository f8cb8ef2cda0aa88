package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/scheduler"
)

const (
	keyPrefix = "quorate:example:" // the user of docs/acl.md may use what begins with quorate:
	ttl       = 3 * time.Second
	stopGrace = 300 * time.Millisecond
	products  = 3
)

// telemetry is where what a replica does is told.
type telemetry struct {
	tracers *trace.TracerProvider
	meters  *metric.MeterProvider
	log     *slog.Logger
	print   *printer
}

// A replica is a service that does all that quorate is for, and tells of it.
type replica struct {
	name      string
	number    int
	locker    *redlock.Locker
	elector   *leader.Elector
	scheduler *scheduler.Scheduler
	gate      *fencing.RedisGate
	guard     *fencing.Guard
	batcher   *fencing.Batcher[string]
	meters    *metric.MeterProvider
	print     *printer
	stops     int         // terms that a mishap has ended
	dawdles   atomic.Bool // the leading function ignores the end of its context, once
}

func newReplica(name string, number int, nodes *fleet, t telemetry) (_ *replica, err error) {
	clients, err := nodes.clients(name)
	if err != nil {
		return nil, err
	}
	r := &replica{name: name, number: number, meters: t.meters, print: t.print}
	r.locker, err = redlock.New(clients, redlock.WithKeyPrefix(keyPrefix), redlock.WithIdentity(name), redlock.WithTTL(ttl),
		redlock.WithMetricName(kindOf),
		redlock.WithLogger(t.log), redlock.WithTracerProvider(t.tracers), redlock.WithMeterProvider(t.meters))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = r.locker.Close() // nothing was asked of it
		}
	}()
	r.elector, err = leader.New(r.locker, "billing", leader.WithTTL(ttl), leader.WithStopGrace(stopGrace), leader.WithResignPause(ttl/4),
		leader.WithLogger(t.log), leader.WithTracerProvider(t.tracers), leader.WithMeterProvider(t.meters))
	if err != nil {
		return nil, err
	}
	r.scheduler, err = scheduler.New(r.locker, scheduler.WithTTL(ttl), scheduler.WithDrainTimeout(time.Second),
		scheduler.WithLogger(t.log), scheduler.WithTracerProvider(t.tracers), scheduler.WithMeterProvider(t.meters))
	if err != nil {
		return nil, err
	}
	if r.gate, err = fencing.NewRedisGate(nodes.store.Host(name).Clients()[0], fencing.WithMeterProvider(t.meters)); err != nil {
		return nil, err
	}
	r.guard, err = fencing.NewGuard(r.locker, r.gate, fencing.WithTracerProvider(t.tracers), fencing.WithMeterProvider(t.meters))
	if err != nil {
		return nil, err
	}
	r.batcher, err = fencing.NewBatcher(r.guard, func(ctx context.Context, sku string, token redlock.Token, buyers []string) error {
		return r.sold(ctx, sku, token, int64(len(buyers)))
	})
	return r, err
}

// kindOf is what the metrics of a lease say of its name: sku:42 is a sku.
func kindOf(name string) string {
	kind, _, _ := strings.Cut(name, ":")
	kind, _, _ = strings.Cut(kind, "/")
	return kind
}

// run does the replica's work until ctx ends.
func (r *replica) run(ctx context.Context, mishaps bool) {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { r.report("elect", r.elector.Run(ctx, r.lead)) })
	all.Go(func() {
		r.report("schedule", r.schedule(ctx, mishaps))
	})
	all.Go(func() { r.sell(ctx) })
	if mishaps {
		all.Go(func() { r.stumble(ctx) })
	}
}

// lead is what only one replica does.
func (r *replica) lead(ctx context.Context, _ leader.Term) error {
	<-ctx.Done()
	if r.dawdles.Swap(false) {
		return pause(context.WithoutCancel(ctx), 2*stopGrace) // see mishaps.go
	}
	return nil
}

// schedule runs a job every two seconds, on one replica at a time.
func (r *replica) schedule(ctx context.Context, mishaps bool) error {
	spec := "@every 2s"
	if mishaps && r.number == 1 {
		spec = "@every 3s" // as in the middle of a deployment, which does not end
	}
	err := r.scheduler.Add("report", spec, func(ctx context.Context, _ scheduler.Run) error {
		return pause(ctx, 50*time.Millisecond)
	}, scheduler.WithLabels(map[string]string{"team": "billing"}))
	if err != nil {
		return err
	}
	return r.scheduler.Run(ctx)
}

// sell sells one piece of a product after the other, of the last one to two buyers at the same time.
func (r *replica) sell(ctx context.Context) {
	for i := 0; pause(ctx, 300*time.Millisecond) == nil; i++ {
		sku := fmt.Sprintf("sku:%d", i%products+1)
		if i%products == products-1 {
			var buyers sync.WaitGroup
			for _, buyer := range []string{"anna", "ben"} {
				buyers.Go(func() { r.report("sell", r.batcher.Do(ctx, sku, buyer)) })
			}
			buyers.Wait()
			continue
		}
		r.report("sell", r.guard.Do(ctx, sku, func(ctx context.Context, token redlock.Token) error {
			return r.sold(ctx, sku, token, 1)
		}))
	}
}

func (r *replica) sold(ctx context.Context, sku string, token redlock.Token, pieces int64) error {
	_, err := r.gate.IncrBy(ctx, sku, token, "sold:{"+sku+"}", pieces, 0)
	return err
}

// report says what went wrong, if it did not because the program ends.
func (r *replica) report(what string, err error) {
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		r.print.say("%s: %s: %v", r.name, what, err)
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *replica) close() {
	_ = r.locker.Close()                        // what it holds runs out
	_ = r.meters.Shutdown(context.Background()) // nobody reads it any more
}
