package redlock

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

const scope = "github.com/quorate/quorate/redlock"

// Attributes of spans and metrics. Names of resources are on spans, and on metrics only as
// WithMetricName says: there may be millions.
const (
	attrName     = attribute.Key("quorate.name")
	attrToken    = attribute.Key("quorate.token")
	attrAttempts = attribute.Key("quorate.attempts")
	attrVotes    = attribute.Key("quorate.votes")
	attrOutcome  = attribute.Key("quorate.outcome")
	attrCause    = attribute.Key("quorate.cause")
	attrNode     = attribute.Key("quorate.node")
)

// telemetry holds the instruments of one Locker.
type telemetry struct {
	tracer    trace.Tracer
	wait      metric.Float64Histogram
	hold      metric.Float64Histogram
	remaining metric.Float64Histogram
	held      metric.Int64UpDownCounter
	lost      metric.Int64Counter
	latency   metric.Float64Histogram
	observed  metric.Registration
	classes   *classes
}

func newTelemetry(s *settings) (*telemetry, error) {
	meter := s.meters.Meter(scope)
	t := &telemetry{tracer: s.tracers.Tracer(scope), classes: newClasses(s.metricName)}
	var errs [6]error
	t.wait, errs[0] = meter.Float64Histogram("quorate.redlock.wait.duration", metric.WithUnit("s"), waitBounds,
		metric.WithDescription("Time from asking for a lease to having it, or to giving up."))
	t.hold, errs[1] = meter.Float64Histogram("quorate.redlock.hold.duration", metric.WithUnit("s"), holdBounds,
		metric.WithDescription("Time that a lease was held."))
	t.remaining, errs[2] = meter.Float64Histogram("quorate.redlock.validity.remaining", metric.WithUnit("s"), validityBounds,
		metric.WithDescription("Validity left when a lease was released."))
	t.held, errs[3] = meter.Int64UpDownCounter("quorate.redlock.leases.held", metric.WithUnit("{lease}"),
		metric.WithDescription("Leases held by this process."))
	t.lost, errs[4] = meter.Int64Counter("quorate.redlock.leases.lost", metric.WithUnit("{lease}"),
		metric.WithDescription("Leases that ended before they were released, by cause."))
	t.latency, errs[5] = meter.Float64Histogram("quorate.redlock.node.duration", metric.WithUnit("s"), nodeBounds,
		metric.WithDescription("Time that a node took to answer one pipeline."))
	return t, errors.Join(errs[:]...)
}

// observe reports on the nodes whenever the metrics are read.
func (t *telemetry) observe(s *settings, f *fleet) error {
	meter := s.meters.Meter(scope)
	var errs [3]error
	up, err := meter.Int64ObservableGauge("quorate.redlock.node.up", metric.WithUnit("{node}"),
		metric.WithDescription("1 when the node answers, 0 when it is suspect."))
	errs[0] = err
	quarantine, err := meter.Float64ObservableGauge("quorate.redlock.node.quarantine", metric.WithUnit("s"),
		metric.WithDescription("Time for which the node's votes do not count, because it restarted; 0 when they do."))
	errs[1] = err
	offset, err := meter.Float64ObservableGauge("quorate.redlock.node.clock.offset", metric.WithUnit("s"),
		metric.WithDescription("The node's wall clock minus that of this process."))
	errs[2] = err
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	t.observed, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, l := range f.lanes {
			value := int64(0)
			if l.isUp() {
				value = 1
			}
			o.ObserveInt64(up, value, l.node.attributes)
		}
		for _, n := range f.servers() {
			o.ObserveFloat64(quarantine, n.quarantine().Seconds(), n.attributes)
			if d, ok := n.clockOffset(); ok {
				o.ObserveFloat64(offset, d.Seconds(), n.attributes)
			}
		}
		f.examine() // for the next time
		return nil
	}, up, quarantine, offset)
	return err
}

func (t *telemetry) close() {
	if t.observed != nil {
		_ = t.observed.Unregister()
	}
}

func (t *telemetry) nodeAnswered(n *node, took time.Duration) {
	t.latency.Record(context.Background(), took.Seconds(), n.attributes)
}

func (t *telemetry) waited(ctx context.Context, c *class, took time.Duration, err error) {
	attributes := c.succeeded
	if err != nil {
		attributes = c.with(attrOutcome.String(outcome(err)))
	}
	t.wait.Record(ctx, took.Seconds(), attributes)
}

func (t *telemetry) released(ctx context.Context, c *class, held, remaining time.Duration) {
	t.hold.Record(ctx, held.Seconds(), c.plain)
	t.remaining.Record(ctx, remaining.Seconds(), c.plain)
}

func (t *telemetry) leaseLost(ctx context.Context, c *class, err error) {
	t.lost.Add(ctx, 1, c.with(attrCause.String(outcome(err))))
}

// start begins a span for a step on a name.
func (t *telemetry) start(ctx context.Context, step, name string, attrs ...attribute.KeyValue) (context.Context, trace.Span) {
	return t.tracer.Start(ctx, "redlock."+step, kindOfSpan, trace.WithAttributes(append(attrs, attrName.String(name))...))
}

// What is the same for each call is made once.
var kindOfSpan = trace.WithSpanKind(trace.SpanKindClient)

// The bounds of histograms, in seconds. Those that an SDK takes by itself are for milliseconds: a node's
// answer, or the validity of a lease, would be in one bucket whatever it is.
var (
	waitBounds     = metric.WithExplicitBucketBoundaries(.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60, 300)
	holdBounds     = metric.WithExplicitBucketBoundaries(.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 900, 3600, 4*3600, 24*3600)
	validityBounds = metric.WithExplicitBucketBoundaries(.05, .1, .2, .5, 1, 2, 3, 4, 5, 6, 7, 8, 10, 15, 30, 60)
	nodeBounds     = metric.WithExplicitBucketBoundaries(.0001, .0002, .0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1)
)

// finish ends a span with what came out. A name that is taken is no error.
func finish(span trace.Span, err error) {
	span.SetAttributes(attrOutcome.String(outcome(err)))
	if err != nil && !errors.Is(err, ErrTaken) {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// outcomes names conditions in telemetry. The first that matches counts.
var outcomes = []struct {
	err  error
	name string
}{
	{context.Canceled, "canceled"},
	{context.DeadlineExceeded, "deadline_exceeded"},
	{ErrClosed, "closed"},
	{ErrExtensionLimit, "extension_limit"},
	{ErrLeaseLost, "lost"},
	{ErrLeaseExpired, "expired"},
	{ErrReleased, "released"},
	{ErrStaleToken, "stale_token"},
	{ErrTaken, "taken"},
	{ErrQuarantined, "quarantined"},
	{ErrNoValidity, "no_validity"},
	{ErrNoQuorum, "no_quorum"},
}

func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	for _, o := range outcomes {
		if errors.Is(err, o.err) {
			return o.name
		}
	}
	return "error"
}
