package main

import (
	"github.com/prometheus/client_golang/prometheus"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
)

// newMeters makes the metrics of a service ready for Prometheus: given to quorate by WithMeterProvider,
// or once for the whole process by otel.SetMeterProvider, they come out where the registry is served.
func newMeters(registry prometheus.Registerer) (*metric.MeterProvider, error) {
	exporter, err := otelprometheus.New(
		otelprometheus.WithRegisterer(registry),
		otelprometheus.WithoutScopeInfo(), // three labels on each series, which say the package's name
	)
	if err != nil {
		return nil, err
	}
	return metric.NewMeterProvider(metric.WithReader(exporter)), nil
}

// newTracers sends spans to an exporter, in batches. A service has that of OTLP here.
func newTracers(exporter trace.SpanExporter) *trace.TracerProvider {
	return trace.NewTracerProvider(trace.WithBatcher(exporter, trace.WithBatchTimeout(batchTimeout)))
}
