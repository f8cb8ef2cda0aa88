package fencing_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

// counts reads a counter, by its one attribute.
func counts(t *testing.T, reader metric.Reader, name string) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &all))
	found := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != name {
				continue
			}
			for _, point := range m.Data.(metricdata.Sum[int64]).DataPoints {
				require.Equal(t, 1, point.Attributes.Len())
				kv, _ := point.Attributes.Get(0)
				found[string(kv.Key)+"="+kv.Value.AsString()] = point.Value
			}
		}
	}
	return found
}

func TestAGuardedSectionIsASpanLinkedToItsLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spans := tracetest.NewInMemoryExporter()
		tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
		locker := w.locker("a", redlock.WithTracerProvider(tracers))
		guard, err := fencing.NewGuard(locker, w.gate, fencing.WithTracerProvider(tracers))
		require.NoError(t, err)

		var token redlock.Token
		var inner func() // ends a span of the function's own
		require.NoError(t, guard.Do(t.Context(), "sku:42", func(ctx context.Context, tok redlock.Token) error {
			_, span := tracers.Tracer("test").Start(ctx, "inner")
			inner, token = func() { span.End() }, tok
			return nil
		}))
		inner()
		declined := errors.New("card declined")
		require.Error(t, guard.Do(t.Context(), "sku:42", func(context.Context, redlock.Token) error { return declined }))
		assert.Panics(t, func() {
			_ = guard.Do(t.Context(), "sku:42", func(context.Context, redlock.Token) error { panic("boom") })
		})

		var guards []tracetest.SpanStub
		byName := map[string]tracetest.SpanStub{}
		for _, s := range spans.GetSpans() {
			if s.Name == "fencing.guard" {
				guards = append(guards, s)
			}
			if _, ok := byName[s.Name]; !ok {
				byName[s.Name] = s
			}
		}
		require.Len(t, guards, 3)
		assert.ElementsMatch(t, []attribute.KeyValue{
			attribute.String("quorate.name", "sku:42"),
			attribute.Int64("quorate.token", int64(token)),
			attribute.String("quorate.outcome", "ok"),
		}, guards[0].Attributes)
		require.Len(t, guards[0].Links, 1)
		assert.Equal(t, byName["redlock.acquire"].SpanContext.SpanID(), guards[0].Links[0].SpanContext.SpanID())
		assert.Equal(t, codes.Unset, guards[0].Status.Code)
		for _, child := range []string{"redlock.acquire", "redlock.release", "inner"} {
			assert.Equal(t, guards[0].SpanContext.SpanID(), byName[child].Parent.SpanID(), child)
		}
		assert.Contains(t, guards[1].Attributes, attribute.String("quorate.outcome", "error"))
		assert.Equal(t, codes.Error, guards[1].Status.Code)
		assert.Contains(t, guards[2].Attributes, attribute.String("quorate.outcome", "panic"))
		assert.Equal(t, codes.Error, guards[2].Status.Code)
	})
}

func TestSectionsAndRefusalsAreCounted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		reader := metric.NewManualReader()
		meters := metric.NewMeterProvider(metric.WithReader(reader))
		gate := newGate(t, w.data, fencing.WithMeterProvider(meters))
		a := w.guard("a", gate, fencing.WithMeterProvider(meters))
		hasty := w.guard("b", gate, fencing.WithMeterProvider(meters), fencing.WithWaitLimit(1))

		ctx := t.Context()
		require.NoError(t, a.Do(ctx, "sku:42", nothing))
		require.Error(t, a.Do(ctx, "sku:42", func(ctx context.Context, token redlock.Token) error {
			require.ErrorIs(t, hasty.Do(ctx, "sku:42", nothing), fencing.ErrWaitLimit)
			return gate.Set(ctx, "sku:42", token-1, "k", "x", 0)
		}))
		require.Error(t, a.Do(ctx, "sku:42", func(ctx context.Context, token redlock.Token) error {
			_, err := gate.IncrBy(ctx, "sku:42", token, "stock", -1, 0)
			return err
		}))
		require.Error(t, a.Do(ctx, "sku:42", func(ctx context.Context, _ redlock.Token) error {
			w.locks.Partition()
			<-ctx.Done()
			w.locks.Heal()
			return ctx.Err()
		}))
		require.Error(t, gate.Admit(ctx, "sku:42", 1))

		assert.Equal(t, map[string]int64{
			"quorate.outcome=ok": 1, "quorate.outcome=stale_token": 1, "quorate.outcome=wait_limit": 1,
			"quorate.outcome=below_floor": 1, "quorate.outcome=expired": 1,
		}, counts(t, reader, "quorate.fencing.guards"))
		assert.Equal(t, map[string]int64{"quorate.gate=redis": 2}, counts(t, reader, "quorate.fencing.stale"))
	})
}
