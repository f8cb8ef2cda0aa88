package redlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/quorate/quorate/redlock"
)

func TestSpansComeOutAsDocumented(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		spans := tracetest.NewSpanRecorder()
		a := w.locker("a", redlock.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))))
		b := w.locker("b", redlock.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))))
		lease := w.acquire(a, "sku:42")
		_, err := b.TryAcquire(t.Context(), "sku:42")
		require.ErrorIs(t, err, redlock.ErrTaken)
		require.NoError(t, lease.Extend(t.Context()))
		require.NoError(t, lease.Release(t.Context()))
		require.ErrorIs(t, lease.Release(t.Context()), redlock.ErrReleased)

		ended := spans.Ended()
		require.Len(t, ended, 5)
		token := attribute.Int64("quorate.token", int64(lease.Token()))
		name := attribute.String("quorate.name", "sku:42")
		outcome := func(s string) attribute.KeyValue { return attribute.String("quorate.outcome", s) }

		acquire, refused, extend, release := ended[0], ended[1], ended[2], ended[3]
		require.Equal(t, "redlock.acquire", acquire.Name())
		require.Subset(t, acquire.Attributes(), []attribute.KeyValue{name, token, outcome("ok"), attribute.Int("quorate.attempts", 1)})
		require.GreaterOrEqual(t, votes(acquire), int64(2))
		require.Equal(t, lease.SpanContext(), acquire.SpanContext())

		require.Equal(t, "redlock.acquire", refused.Name())
		require.Contains(t, refused.Attributes(), outcome("taken"))
		require.Equal(t, codes.Unset, refused.Status().Code, "that a name is taken is no error")

		require.Equal(t, "redlock.extend", extend.Name())
		require.Subset(t, extend.Attributes(), []attribute.KeyValue{name, token, outcome("ok")})
		require.Equal(t, acquire.SpanContext(), extend.Links()[0].SpanContext)

		require.Equal(t, "redlock.release", release.Name())
		require.Subset(t, release.Attributes(), []attribute.KeyValue{name, token, outcome("ok")})
		require.Contains(t, ended[4].Attributes(), outcome("released"))
		require.Equal(t, codes.Error, ended[4].Status().Code)
	})
}

func votes(s sdktrace.ReadOnlySpan) int64 {
	for _, a := range s.Attributes() {
		if a.Key == "quorate.votes" {
			return a.Value.AsInt64()
		}
	}
	return -1
}

func TestMetricsComeOutAsDocumented(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		reader := metric.NewManualReader()
		a := w.locker("a", redlock.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
		lease := w.acquire(a, "sku:42")
		held := w.acquire(a, "sku:43")
		time.Sleep(2 * time.Second)
		require.NoError(t, lease.Release(t.Context()))
		_, err := a.TryAcquire(t.Context(), "sku:43")
		require.ErrorIs(t, err, redlock.ErrTaken)
		synctest.Wait()
		w.fleet.Stop(2)
		_ = held.Extend(t.Context())
		time.Sleep(time.Second)

		m := collect(t, reader)
		wait := m["quorate.redlock.wait.duration"].(metricdata.Histogram[float64])
		require.Equal(t, uint64(2), point(wait, "quorate.outcome", "ok").Count)
		require.Equal(t, uint64(1), point(wait, "quorate.outcome", "taken").Count)
		hold := m["quorate.redlock.hold.duration"].(metricdata.Histogram[float64]).DataPoints[0]
		require.InDelta(t, 2.0, hold.Sum, 0.01)
		remaining := m["quorate.redlock.validity.remaining"].(metricdata.Histogram[float64]).DataPoints[0]
		require.InDelta(t, 5.918, remaining.Sum, 0.01)
		require.Equal(t, int64(1), m["quorate.redlock.leases.held"].(metricdata.Sum[int64]).DataPoints[0].Value)
		require.NotEmpty(t, m["quorate.redlock.node.duration"].(metricdata.Histogram[float64]).DataPoints)
		up := map[string]int64{}
		for _, p := range m["quorate.redlock.node.up"].(metricdata.Gauge[int64]).DataPoints {
			node, _ := p.Attributes.Value("quorate.node")
			up[node.AsString()] = p.Value
		}
		require.Equal(t, map[string]int64{"10.0.0.1:6379": 1, "10.0.0.2:6379": 1, "10.0.0.3:6379": 0}, up)

		<-held.Context().Done()
		synctest.Wait() // the metrics follow the context
		m = collect(t, reader)
		lost := m["quorate.redlock.leases.lost"].(metricdata.Sum[int64]).DataPoints[0]
		require.Equal(t, int64(1), lost.Value)
		cause, _ := lost.Attributes.Value("quorate.cause")
		require.Equal(t, "expired", cause.AsString())
		require.Zero(t, m["quorate.redlock.leases.held"].(metricdata.Sum[int64]).DataPoints[0].Value)
	})
}

func collect(t *testing.T, reader metric.Reader) map[string]metricdata.Aggregation {
	t.Helper()
	var rm metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &rm))
	found := map[string]metricdata.Aggregation{}
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			found[m.Name] = m.Data
		}
	}
	return found
}

func point(h metricdata.Histogram[float64], key, value string) metricdata.HistogramDataPoint[float64] {
	for _, p := range h.DataPoints {
		if v, ok := p.Attributes.Value(attribute.Key(key)); ok && v.AsString() == value {
			return p
		}
	}
	return metricdata.HistogramDataPoint[float64]{}
}
