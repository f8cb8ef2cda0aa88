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
	attrOutcome = attribute.Key("quorate.outcome")
	attrGate    = attribute.Key("quorate.gate")
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

// start begins the span of a guarded section, waiting included.
func (t *guardTelemetry) start(ctx context.Context, resource string) (context.Context, trace.Span) {
	return t.tracer.Start(ctx, "fencing.guard", trace.WithAttributes(attrName.String(resource)))
}

// cover takes note of the lease that covers the section.
func cover(span trace.Span, lease *redlock.Lease) {
	span.SetAttributes(attrToken.Int64(int64(lease.Token())))
	span.AddLink(trace.Link{SpanContext: lease.SpanContext()})
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
	{ErrBelowFloor, "below_floor"},
	{redlock.ErrClosed, "closed"},
	{redlock.ErrExtensionLimit, "extension_limit"},
	{redlock.ErrLeaseLost, "lost"},
	{redlock.ErrLeaseExpired, "expired"},
	{context.Canceled, "canceled"},
	{context.DeadlineExceeded, "deadline_exceeded"},
	{redlock.ErrQuarantined, "quarantined"},
	{redlock.ErrNoValidity, "no_validity"},
	{redlock.ErrNoQuorum, "no_quorum"},
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
