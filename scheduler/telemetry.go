package scheduler

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

const scope = "github.com/quorate/quorate/scheduler"

// Attributes of spans and metrics. Jobs are few, so metrics have their names.
const (
	attrJob       = attribute.Key("quorate.job")
	attrScheduled = attribute.Key("quorate.scheduled") // RFC 3339
	attrToken     = attribute.Key("quorate.token")
	attrAttempt   = attribute.Key("quorate.attempt")
	attrOutcome   = attribute.Key("quorate.outcome")
	attrReason    = attribute.Key("quorate.reason")
	attrKind      = attribute.Key("quorate.kind")
	labelPrefix   = "quorate.label."
)

// The bounds of histograms, in seconds. Those that an SDK takes by itself are for milliseconds.
var (
	lagBounds = metric.WithExplicitBucketBoundaries(.005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60, 300, 3600)
	runBounds = metric.WithExplicitBucketBoundaries(.01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 900, 1800, 3600)
)

// telemetry holds the instruments of one Scheduler.
type telemetry struct {
	tracer   trace.Tracer
	ticks    metric.Int64Counter
	lag      metric.Float64Histogram
	duration metric.Float64Histogram
	mismatch metric.Int64Counter
}

func newTelemetry(s *settings) (*telemetry, error) {
	meter := s.meters.Meter(scope)
	t := &telemetry{tracer: s.tracers.Tracer(scope)}
	var errs [4]error
	t.ticks, errs[0] = meter.Int64Counter("quorate.scheduler.ticks", metric.WithUnit("{tick}"),
		metric.WithDescription("Ticks, by what became of them as seen by this replica."))
	t.lag, errs[1] = meter.Float64Histogram("quorate.scheduler.start.lag", metric.WithUnit("s"), lagBounds,
		metric.WithDescription("Time from a tick to the start of its run."))
	t.duration, errs[2] = meter.Float64Histogram("quorate.scheduler.run.duration", metric.WithUnit("s"), runBounds,
		metric.WithDescription("Time that a run took, by outcome."))
	t.mismatch, errs[3] = meter.Int64Counter("quorate.scheduler.mismatches", metric.WithUnit("{mismatch}"),
		metric.WithDescription("Times that this replica found another spec for a job than its own."))
	return t, errors.Join(errs[:]...)
}

func (t *telemetry) ticked(e *Event) {
	if e.Outcome == Mismatch {
		t.mismatch.Add(context.Background(), 1, metric.WithAttributes(attrJob.String(e.Job)))
		return
	}
	attrs := []attribute.KeyValue{attrJob.String(e.Job), attrOutcome.String(string(e.Outcome))}
	if e.Reason != "" {
		attrs = append(attrs, attrReason.String(string(e.Reason)))
	}
	t.ticks.Add(context.Background(), int64(e.Ticks), metric.WithAttributes(attrs...))
}

func (t *telemetry) started(ctx context.Context, job string, lag time.Duration) {
	t.lag.Record(ctx, lag.Seconds(), metric.WithAttributes(attrJob.String(job)))
}

func (t *telemetry) ended(ctx context.Context, e *Event) {
	t.duration.Record(ctx, e.Duration.Seconds(), metric.WithAttributes(attrJob.String(e.Job), attrOutcome.String(string(e.Outcome))))
}

// start begins the span of a run, linked to that of the acquisition which covers it.
func (t *telemetry) start(ctx context.Context, run *Run, acquired trace.SpanContext) (context.Context, trace.Span) {
	attrs := []attribute.KeyValue{
		attrJob.String(run.Job), attrKind.String(string(run.Kind)), attrScheduled.String(run.Scheduled.Format(time.RFC3339Nano)),
		attrToken.Int64(int64(run.Token)), attrAttempt.Int(run.Attempt),
	}
	for k, v := range run.Labels {
		attrs = append(attrs, attribute.String(labelPrefix+k, v))
	}
	return t.tracer.Start(ctx, "scheduler.run", trace.WithLinks(trace.Link{SpanContext: acquired}), trace.WithAttributes(attrs...))
}

func finish(span trace.Span, e *Event) {
	span.SetAttributes(attrOutcome.String(string(e.Outcome)))
	if e.Reason != "" {
		span.SetAttributes(attrReason.String(string(e.Reason)))
	}
	if e.Err != nil {
		span.RecordError(e.Err)
		span.SetStatus(codes.Error, e.Err.Error())
	}
	span.End()
}
