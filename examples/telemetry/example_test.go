package main

import (
	"context"
	"fmt"
	"go/format"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// wireUp is the code of docs/telemetry.md, word by word.
func wireUp(spans trace.SpanExporter) error {
	exporter, err := prometheus.New(prometheus.WithoutScopeInfo()) // go.opentelemetry.io/otel/exporters/prometheus
	if err != nil {
		return err
	}
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(exporter)))
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithBatcher(spans))) // spans: for instance otlptracegrpc
	http.Handle("/metrics", promhttp.Handler())
	return nil
}

func Example() {
	spans := tracetest.NewInMemoryExporter()
	if err := wireUp(spans); err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = otel.GetTracerProvider().(*trace.TracerProvider).Shutdown(context.Background()) }()
	counter, err := otel.Meter("example").Int64Counter("example.events")
	if err != nil {
		fmt.Println(err)
		return
	}
	counter.Add(context.Background(), 1)

	answer := httptest.NewRecorder()
	http.DefaultServeMux.ServeHTTP(answer, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/metrics", nil))
	fmt.Println(strings.Contains(answer.Body.String(), "\nexample_events_total 1\n"))
	// Output: true
}

func TestTheCodeOfThePageIsThatOfTheExample(t *testing.T) {
	page, err := os.ReadFile("../../docs/telemetry.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## To wire it up\n")
	require.True(t, found)
	_, code, found := strings.Cut(section, "\n```go\n")
	require.True(t, found)
	code, _, _ = strings.Cut(code, "\n```\n")
	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	formatted, err := format.Source([]byte("func wireUp(spans trace.SpanExporter) error {\n" + code + "\nreturn nil\n}"))
	require.NoError(t, err)
	require.Contains(t, string(source), string(formatted))
}
