package leader

import (
	"context"
	"errors"
	"log/slog"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

const scope = "github.com/quorate/quorate/leader"

// Attributes of spans and metrics. A process takes part in few elections, so the metrics have
// their names.
const (
	attrName    = attribute.Key("quorate.name")
	attrToken   = attribute.Key("quorate.token")
	attrLeader  = attribute.Key("quorate.leader")
	attrOutcome = attribute.Key("quorate.outcome")
)

// termBounds are in seconds. Those that an SDK takes by itself end before three hours.
var termBounds = metric.WithExplicitBucketBoundaries(.1, 1, 5, 10, 30, 60, 300, 900, 3600, 4*3600, 12*3600, 24*3600)

// telemetry holds the instruments of one Elector.
type telemetry struct {
	tracer     trace.Tracer
	meter      metric.Meter
	terms      metric.Int64Counter
	duration   metric.Float64Histogram
	stuckTerms metric.Int64Counter
	stoodBack  metric.Int64Counter
	leading    metric.Int64ObservableGauge
	stuck      metric.Int64ObservableGauge
}

func newTelemetry(s *settings) (*telemetry, error) {
	t := &telemetry{tracer: s.tracers.Tracer(scope), meter: s.meters.Meter(scope)}
	var errs [6]error
	t.terms, errs[0] = t.meter.Int64Counter("quorate.leader.terms", metric.WithUnit("{term}"),
		metric.WithDescription("Terms of this process that ended, by outcome."))
	t.duration, errs[1] = t.meter.Float64Histogram("quorate.leader.term.duration", metric.WithUnit("s"), termBounds,
		metric.WithDescription("Time that the leading function of a term ran."))
	t.leading, errs[2] = t.meter.Int64ObservableGauge("quorate.leader.leading", metric.WithUnit("{leader}"),
		metric.WithDescription("1 while this process leads, else 0."))
	t.stuckTerms, errs[3] = t.meter.Int64Counter("quorate.leader.stuck.terms", metric.WithUnit("{term}"),
		metric.WithDescription("Terms whose leading function did not return in time when its context had ended."))
	t.stuck, errs[4] = t.meter.Int64ObservableGauge("quorate.leader.stuck", metric.WithUnit("{term}"),
		metric.WithDescription("1 while a leading function has not returned in time, else 0."))
	t.stoodBack, errs[5] = t.meter.Int64Counter("quorate.leader.stood_back", metric.WithUnit("{lease}"),
		metric.WithDescription("Leases that were won and given back without a term."))
	return t, errors.Join(errs[:]...)
}

// observe reports whether the elector leads whenever the metrics are read: the reading is
// bounded by time, as IsLeader is.
func (t *telemetry) observe(e *Elector) (metric.Registration, error) {
	return t.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		tenure := e.tenure()
		o.ObserveInt64(t.leading, oneIf(e.IsLeader()), t.of(e.name))
		o.ObserveInt64(t.stuck, oneIf(tenure != nil && tenure.isStuck()), t.of(e.name))
		return nil
	}, t.leading, t.stuck)
}

func oneIf(on bool) int64 {
	if on {
		return 1
	}
	return 0
}

// of are the attributes of what has no outcome.
func (t *telemetry) of(name string) metric.MeasurementOption {
	return metric.WithAttributes(attrName.String(name))
}

// start begins the span of a term. The lease's context has the values of Run's.
func (t *telemetry) start(n *tenure) (context.Context, trace.Span) {
	return t.tracer.Start(n.lease.Context(), "leader.term",
		trace.WithLinks(trace.Link{SpanContext: n.lease.SpanContext()}),
		trace.WithAttributes(attrName.String(n.term.Name), attrToken.Int64(int64(n.term.Number)), attrLeader.String(n.term.Leader)))
}

// report tells how a term ended.
func (e *Elector) report(t *tenure, end ending, cause error) {
	byOutcome := metric.WithAttributes(attrName.String(e.name), attrOutcome.String(string(end.outcome)))
	e.telemetry.terms.Add(t.ctx, 1, byOutcome)
	e.telemetry.duration.Record(t.ctx, end.lasted.Seconds(), byOutcome)

	level, attrs := slog.LevelInfo, append(t.attrs(), "outcome", string(end.outcome), "lasted", end.lasted)
	if cause != nil {
		attrs = append(attrs, "cause", cause)
	}
	failure := end.err
	switch {
	case failure != nil:
		level, attrs = slog.LevelError, append(attrs, "error", failure)
	case end.lost, end.outcome == unhealthy:
		level, failure = slog.LevelWarn, cause
	}
	if failure != nil {
		t.span.RecordError(failure)
		t.span.SetStatus(codes.Error, failure.Error())
	}
	e.settings.logger.Log(t.ctx, level, "leader: term ended", attrs...)
	t.span.SetAttributes(attrOutcome.String(string(end.outcome)))
	t.span.End()
}

func (t *tenure) attrs() []any {
	return []any{"name", t.term.Name, "term", t.term.Number, "leader", t.term.Leader}
}
