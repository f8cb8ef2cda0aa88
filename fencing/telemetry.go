package fencing

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/redlock"
)

const scope = "github.com/quorate/quorate/fencing"

// Attributes of spans and metrics. Names of resources are on spans only: there may be millions.
const (
	attrName    = attribute.Key("quorate.name")
	attrToken   = attribute.Key("quorate.token")
	attrNames   = attribute.Key("quorate.names")  // of several resources, in order
	attrTokens  = attribute.Key("quorate.tokens") // in the same order
	attrOutcome = attribute.Key("quorate.outcome")
	attrGate    = attribute.Key("quorate.gate")
	attrItems   = attribute.Key("quorate.items") // of a batch
)

// guardTelemetry holds the instruments of one Guard.
type guardTelemetry struct {
	tracer trace.Tracer
	guards metric.Int64Counter
}

func newGuardTelemetry(s *guardSettings) (*guardTelemetry, error) {
	guards, err := s.meters.Meter(scope).Int64Counter("quorate.fencing.guards", metric.WithUnit("{guard}"),
		metric.WithDescription("Guarded sections, by outcome."))
	return &guardTelemetry{tracer: s.tracers.Tracer(scope), guards: guards}, err
}

// newBatchSizes makes the histogram of a Batcher.
func newBatchSizes(meters metric.MeterProvider) (metric.Int64Histogram, error) {
	return meters.Meter(scope).Int64Histogram("quorate.fencing.batch.items", metric.WithUnit("{item}"),
		metric.WithDescription("Items of a batch."),
		metric.WithExplicitBucketBoundaries(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000))
}

// start begins the span of a guarded section, waiting included.
func (t *guardTelemetry) start(ctx context.Context, resources []string) (context.Context, trace.Span) {
	about := attrName.String(resources[0])
	if len(resources) > 1 {
		about = attrNames.StringSlice(resources)
	}
	return t.tracer.Start(ctx, "fencing.guard", trace.WithAttributes(about))
}

// cover takes note of the leases that cover the section.
func cover(span trace.Span, leases []*redlock.Lease) {
	tokens := make([]int64, 0, len(leases))
	for _, lease := range leases {
		tokens = append(tokens, int64(lease.Token()))
		span.AddLink(trace.Link{SpanContext: lease.SpanContext()})
	}
	if len(leases) == 1 {
		span.SetAttributes(attrToken.Int64(tokens[0]))
	} else {
		span.SetAttributes(attrTokens.Int64Slice(tokens))
	}
}

func (t *guardTelemetry) finish(ctx context.Context, span trace.Span, returned bool, err error) {
	out := outcome(err)
	if !returned {
		out = "panic"
		span.SetStatus(codes.Error, "panic")
	}
	t.guards.Add(ctx, 1, metric.WithAttributes(attrOutcome.String(out)))
	span.SetAttributes(attrOutcome.String(out))
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// gateTelemetry counts what one kind of gate refuses.
type gateTelemetry struct {
	stale metric.Int64Counter
	gate  metric.MeasurementOption
}

func newGateTelemetry(meters metric.MeterProvider, gate string) (*gateTelemetry, error) {
	stale, err := meters.Meter(scope).Int64Counter("quorate.fencing.stale", metric.WithUnit("{token}"),
		metric.WithDescription("Stale tokens that a gate has refused: admissions and writes that came too late."))
	return &gateTelemetry{stale: stale, gate: metric.WithAttributes(attrGate.String(gate))}, err
}

func (t *gateTelemetry) refused(ctx context.Context) { t.stale.Add(ctx, 1, t.gate) }

// outcomes names conditions in telemetry. The first that matches counts: what says most.
var outcomes = []struct {
	err  error
	name string
}{
	{ErrStaleToken, "stale_token"},
	{ErrWaitLimit, "wait_limit"},
	{ErrHoldLimit, "hold_limit"},
	{ErrQueueFull, "queue_full"},
	{ErrBelowFloor, "below_floor"},
	{ErrTxConflict, "tx_conflict"},
	{redlock.ErrClosed, "closed"},
	{redlock.ErrExtensionLimit, "extension_limit"},
	{redlock.ErrLeaseLost, "lost"},
	{redlock.ErrLeaseExpired, "expired"},
	{context.Canceled, "canceled"},
	{context.DeadlineExceeded, "deadline_exceeded"},
	{redlock.ErrQuarantined, "quarantined"},
	{redlock.ErrNoValidity, "no_validity"},
	{redlock.ErrNoQuorum, "no_quorum"},
	{redlock.ErrTaken, "taken"}, // what one who gave up waiting found last is told above
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
