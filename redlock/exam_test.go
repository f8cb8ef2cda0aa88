package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/quorate/quorate/redlock"
)

func TestASlowAnswerIsNoWrongClock(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		l := w.locker("a")
		w.warm(l)
		w.fleet.Delay(1, 300*time.Millisecond)
		w.fleet.SkewClock(2, time.Second)
		reports, err := l.Check(t.Context())
		require.NoError(t, err)
		require.Zero(t, reports[1].ClockOffset)
		require.Empty(t, reports[1].Warnings)
		require.GreaterOrEqual(t, reports[1].Latency, 300*time.Millisecond)
		require.Less(t, reports[0].Latency, 300*time.Millisecond)
		require.InDelta(t, time.Second, reports[2].ClockOffset, float64(10*time.Millisecond))
		require.Len(t, reports[2].Warnings, 1)
	})
}

// The SDK's own begin with 0, 5 and 10: those are for milliseconds.
func TestHistogramsHaveBoundsForSeconds(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		reader := metric.NewManualReader()
		l := w.locker("a", redlock.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
		require.NoError(t, w.acquire(l, "sku:42").Release(t.Context()))
		histograms := 0
		for name, data := range collect(t, reader) {
			if h, ok := data.(metricdata.Histogram[float64]); ok {
				histograms++
				below := 0
				for _, bound := range h.DataPoints[0].Bounds {
					if bound < 1 {
						below++
					}
				}
				require.GreaterOrEqual(t, below, 4, "%s: %v", name, h.DataPoints[0].Bounds)
			}
		}
		require.Equal(t, 4, histograms)
	})
}
