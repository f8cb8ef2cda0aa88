package redlock_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/quorate/quorate/redlock"
)

// kindOf is the part of a name before the colon, if there is one.
func kindOf(name string) string {
	kind, _, found := strings.Cut(name, ":")
	if !found {
		return ""
	}
	return kind
}

// nameOf is the attribute quorate.name of a point of a metric.
func nameOf(set attribute.Set) string {
	v, _ := set.Value("quorate.name")
	return v.AsString()
}

func TestMetricsHaveTheNamesThatWereAskedFor(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		reader := metric.NewManualReader()
		a := w.locker("a", redlock.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))), redlock.WithMetricName(kindOf))
		require.NoError(t, w.acquire(a, "sku:42").Release(t.Context()))
		require.NoError(t, w.acquire(a, "nightly").Release(t.Context()))
		forgotten := w.acquire(a, "sku:43")
		_, err := a.TryAcquire(t.Context(), "sku:43")
		require.ErrorIs(t, err, redlock.ErrTaken)
		<-forgotten.Context().Done()
		w.acquire(a, "user:7")
		synctest.Wait()

		m := collect(t, reader)
		waits := map[string]uint64{}
		for _, p := range m["quorate.redlock.wait.duration"].(metricdata.Histogram[float64]).DataPoints {
			outcome, _ := p.Attributes.Value("quorate.outcome")
			waits[nameOf(p.Attributes)+" "+outcome.AsString()] = p.Count
		}
		require.Equal(t, map[string]uint64{"sku ok": 2, "sku taken": 1, " ok": 1, "user ok": 1}, waits)
		for _, name := range []string{"quorate.redlock.hold.duration", "quorate.redlock.validity.remaining"} {
			released := map[string]uint64{}
			for _, p := range m[name].(metricdata.Histogram[float64]).DataPoints {
				released[nameOf(p.Attributes)] = p.Count
			}
			require.Equal(t, map[string]uint64{"sku": 1, "": 1}, released, name)
		}
		held := map[string]int64{}
		for _, p := range m["quorate.redlock.leases.held"].(metricdata.Sum[int64]).DataPoints {
			held[nameOf(p.Attributes)] = p.Value
		}
		require.Equal(t, map[string]int64{"sku": 0, "": 0, "user": 1}, held)
		lost := m["quorate.redlock.leases.lost"].(metricdata.Sum[int64]).DataPoints
		require.Len(t, lost, 1)
		require.Equal(t, "sku", nameOf(lost[0].Attributes))
	})
}

func TestTheNumberOfNamesOnMetricsIsBounded(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		reader := metric.NewManualReader()
		a := w.locker("a", redlock.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))),
			redlock.WithMetricName(func(name string) string { return name }))
		const names = 3 * redlock.MaxMetricNames
		for range 2 {
			for i := range names {
				require.NoError(t, w.acquire(a, fmt.Sprintf("sku:%d", i)).Release(t.Context()))
			}
		}
		counts := map[string]uint64{}
		for _, p := range collect(t, reader)["quorate.redlock.hold.duration"].(metricdata.Histogram[float64]).DataPoints {
			counts[nameOf(p.Attributes)] = p.Count
		}
		require.Len(t, counts, redlock.MaxMetricNames+1)
		require.Equal(t, uint64(2), counts["sku:0"])
		require.Equal(t, uint64(2), counts[fmt.Sprintf("sku:%d", redlock.MaxMetricNames-1)])
		require.Equal(t, uint64(2*(names-redlock.MaxMetricNames)), counts[redlock.OtherMetricName])
	})
}

func TestLeasesHaveNoNamesOnMetricsByDefault(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		reader := metric.NewManualReader()
		a := w.locker("a", redlock.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
		require.NoError(t, w.acquire(a, "sku:42").Release(t.Context()))
		for _, p := range collect(t, reader)["quorate.redlock.hold.duration"].(metricdata.Histogram[float64]).DataPoints {
			require.Zero(t, p.Attributes.Len())
		}
	})
}

// gauge reads a gauge of the nodes, by address, having let what the reading before began come to its end.
func gauge(t *testing.T, reader metric.Reader, name string) map[string]float64 {
	t.Helper()
	synctest.Wait()
	values := map[string]float64{}
	found, ok := collect(t, reader)[name].(metricdata.Gauge[float64])
	require.True(t, ok, "no gauge %s", name)
	for _, p := range found.DataPoints {
		node, _ := p.Attributes.Value("quorate.node")
		values[node.AsString()] = p.Value
	}
	return values
}

func TestAClockThatGoesWrongLaterIsSeen(t *testing.T) {
	const clocks = "quorate.redlock.node.clock.offset"
	bubble(t, 3, func(t *testing.T, w *world) {
		reader := metric.NewManualReader()
		a := w.locker("a", redlock.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
		w.acquire(a, "sku:42")
		right := map[string]float64{"10.0.0.1:6379": 0, "10.0.0.2:6379": 0, "10.0.0.3:6379": 0}
		require.Equal(t, right, gauge(t, reader, clocks))

		w.fleet.SkewClock(1, -3*time.Second)
		w.fleet.Delay(2, 400*time.Millisecond) // the way may explain the difference
		time.Sleep(time.Minute)
		before := w.fleet.Commands(1)
		gauge(t, reader, clocks) // has the nodes asked
		time.Sleep(time.Second)
		require.InDeltaMapValues(t, map[string]float64{"10.0.0.1:6379": 0, "10.0.0.2:6379": -3, "10.0.0.3:6379": 0}, gauge(t, reader, clocks), 1e-3)
		asked := w.fleet.Commands(1)
		require.Greater(t, asked, before)
		gauge(t, reader, clocks)
		gauge(t, reader, clocks)
		require.Equal(t, asked, w.fleet.Commands(1), "however often somebody reads, nodes are asked once a minute")
	})
}

func TestTheQuarantineOfANodeIsMeasured(t *testing.T) {
	const quarantine = "quorate.redlock.node.quarantine"
	bubble(t, 3, func(t *testing.T, w *world) {
		reader := metric.NewManualReader()
		a := w.locker("a", redlock.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
		require.NoError(t, w.acquire(a, "sku:42").Release(t.Context()))
		require.Zero(t, gauge(t, reader, quarantine)["10.0.0.2:6379"])
		w.fleet.RestartEmpty(1)
		time.Sleep(2 * time.Second)
		require.NoError(t, w.acquire(a, "sku:42").Release(t.Context()))
		time.Sleep(time.Second)
		left := gauge(t, reader, quarantine)
		require.InDelta(t, 8, left["10.0.0.2:6379"], 2)
		require.Zero(t, left["10.0.0.1:6379"])
		time.Sleep(10 * time.Second)
		require.Zero(t, gauge(t, reader, quarantine)["10.0.0.2:6379"])
	})
}

func TestCloseEndsTheQuestionsThatReadingMetricsHasBegun(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		reader := metric.NewManualReader()
		a := w.locker("a", redlock.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
		require.NoError(t, w.acquire(a, "sku:42").Release(t.Context()))
		time.Sleep(time.Minute)
		w.fleet.Hang(0)
		collect(t, reader) // node 0 is not known to hang
		require.NoError(t, a.Close())
		commands := w.fleet.Commands(1)
		time.Sleep(2 * time.Minute)
		require.Empty(t, collect(t, reader)["quorate.redlock.node.up"])
		require.Equal(t, commands, w.fleet.Commands(1))
	})
}
