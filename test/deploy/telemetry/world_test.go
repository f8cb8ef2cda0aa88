package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
	"github.com/quorate/quorate/scheduler"
)

const scrapeEvery = 15 * time.Second

// A world is a service of three replicas on five nodes, in fake time, with a Prometheus that scrapes it.
type world struct {
	t        *testing.T
	nodes    *redlocktest.Fleet
	store    *redlocktest.Fleet
	replicas []*replica
	scraped  *series
	spans    *tracetest.SpanRecorder
}

// simulate runs a scenario, and returns what was scraped from its begin to its end.
func simulate(t *testing.T, scenario func(w *world)) *world {
	t.Helper()
	w := &world{scraped: newSeries(), spans: tracetest.NewSpanRecorder()}
	synctest.Test(t, func(t *testing.T) {
		w.t = t
		w.nodes, w.store = redlocktest.Start(t, 5), redlocktest.Start(t, 1)
		scenario(w)
		for _, r := range w.replicas {
			r.end()
		}
	})
	return w
}

// A replica does some of everything that quorate is for.
type replica struct {
	w        *world
	name     string
	clock    *redlocktest.Clock
	registry *prometheus.Registry
	reader   *metric.ManualReader
	meters   *metric.MeterProvider
	locker   *redlock.Locker
	elector  *leader.Elector
	sched    *scheduler.Scheduler
	gate     *fencing.RedisGate
	guard    *fencing.Guard

	stop func()
	work sync.WaitGroup
	up   bool
}

// plan is what a replica does otherwise than the others.
type plan struct {
	nodes  *redlocktest.Fleet // default: the world's
	lead   func(ctx context.Context, term leader.Term) error
	run    func(ctx context.Context, run scheduler.Run) error
	spec   string
	sales  int
	locker []redlock.Option
	job    []scheduler.JobOption
}

// none: no sales.
const none = -1

// start starts replicas that follow the plan.
func (w *world) start(p plan, names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.replicas = append(w.replicas, w.newReplica(p, name))
	}
}

func (w *world) replica(name string) *replica {
	for _, r := range w.replicas {
		if r.name == name {
			return r
		}
	}
	require.Failf(w.t, "no such replica", "%q", name)
	return nil
}

func (w *world) newReplica(p plan, name string) *replica {
	t := w.t
	nodes := p.nodes
	if nodes == nil {
		nodes = w.nodes
	}
	r := &replica{w: w, name: name, clock: redlocktest.NewClock(), registry: prometheus.NewRegistry(), reader: metric.NewManualReader(), up: true}
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(r.registry))
	require.NoError(t, err)
	r.meters = metric.NewMeterProvider(metric.WithReader(exporter), metric.WithReader(r.reader))
	tracers := trace.NewTracerProvider(trace.WithSpanProcessor(w.spans))
	quiet := slog.New(slog.DiscardHandler)

	r.locker, err = redlock.New(nodes.Host(name).Clients(), append([]redlock.Option{
		redlock.WithClock(r.clock), redlock.WithIdentity(name), redlock.WithLogger(quiet),
		redlock.WithTracerProvider(tracers), redlock.WithMeterProvider(r.meters),
	}, p.locker...)...)
	require.NoError(t, err)
	r.elector, err = leader.New(r.locker, "billing", leader.WithLogger(quiet), leader.WithTracerProvider(tracers), leader.WithMeterProvider(r.meters))
	require.NoError(t, err)
	r.sched, err = scheduler.New(r.locker, scheduler.WithClock(r.clock), scheduler.WithLogger(quiet), scheduler.WithIdentity(name),
		scheduler.WithTracerProvider(tracers), scheduler.WithMeterProvider(r.meters))
	require.NoError(t, err)
	r.gate, err = fencing.NewRedisGate(w.store.Host(name).Clients()[0], fencing.WithMeterProvider(r.meters))
	require.NoError(t, err)
	r.guard, err = fencing.NewGuard(r.locker, r.gate, fencing.WithTracerProvider(tracers), fencing.WithMeterProvider(r.meters))
	require.NoError(t, err)
	r.begin(p)
	return r
}

func (r *replica) begin(p plan) {
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	lead, run, spec := p.lead, p.run, p.spec
	if lead == nil {
		lead = func(ctx context.Context, _ leader.Term) error {
			<-ctx.Done()
			return nil
		}
	}
	if run == nil {
		run = func(context.Context, scheduler.Run) error {
			sleep(time.Second)
			return nil
		}
	}
	if spec == "" {
		spec = "* * * * *"
	}
	require.NoError(r.w.t, r.sched.Add("report", spec, run, p.job...))
	r.work.Go(func() { _ = r.elector.Run(ctx, lead) })
	r.work.Go(func() { _ = r.sched.Run(ctx) })
	if p.sales != none {
		r.work.Go(func() { r.sell(ctx) })
	}
}

// sell keeps the nodes busy with guarded updates, as a service does.
func (r *replica) sell(ctx context.Context) {
	for {
		_ = r.guard.Do(ctx, "sku:42", func(ctx context.Context, token redlock.Token) error {
			_, err := r.gate.IncrBy(ctx, "sku:42", token, "sold:{sku:42}", 1, 0)
			return err
		})
		select {
		case <-time.After(10 * time.Second):
		case <-ctx.Done():
			return
		}
	}
}

// end stops the replica in good order.
func (r *replica) end() {
	if !r.up {
		return
	}
	r.stop()
	r.work.Wait()
	r.up = false
	_ = r.locker.Close()
	require.NoError(r.w.t, r.meters.Shutdown(context.Background()))
}

// pass lets time pass, with scrapes.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	for ; d > 0; d -= scrapeEvery {
		sleep(scrapeEvery)
		synctest.Wait()
		w.scrape()
	}
}

func (w *world) scrape() {
	w.t.Helper()
	now := time.Now()
	for _, r := range w.replicas {
		if !r.up {
			w.scraped.gone(now, r.name)
			continue
		}
		families, err := r.registry.Gather()
		require.NoError(w.t, err)
		w.scraped.add(now, r.name, families)
	}
}

// warmUp lets the service run for a while, and ends at a moment at which no job runs and nobody sells.
func (w *world) warmUp() {
	w.t.Helper()
	w.pass(3*time.Minute + 30*time.Second)
	sleep(2500 * time.Millisecond)
}

// sleep moves the clock of the bubble, in which all that happens here does.
func sleep(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // no time passes that anybody waits for
}

// leads waits until one of the replicas leads.
func (w *world) leads() *replica {
	w.t.Helper()
	for range 600 {
		for _, r := range w.replicas {
			if r.up && r.elector.IsLeader() {
				return r
			}
		}
		sleep(100 * time.Millisecond)
	}
	require.Fail(w.t, "nobody leads after a minute")
	return nil
}

var errBroken = errors.New("no paper")

func nothing(context.Context, fencing.Tokens) error { return nil }

// kindOf is what a service might give to WithMetricName.
func kindOf(name string) string {
	kind, _, _ := strings.Cut(name, ":")
	return kind
}
