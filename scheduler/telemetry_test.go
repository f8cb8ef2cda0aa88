package scheduler_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/scheduler"
)

func TestEachRunHasASpanThatIsLinkedToItsLease(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		exporter := tracetest.NewInMemoryExporter()
		provider := trace.NewTracerProvider(trace.WithSyncer(exporter))
		clock := w.replica("clock").clock
		locker, err := redlock.New(w.fleet.Clients(), redlock.WithClock(clock), redlock.WithLogger(quiet()), redlock.WithTracerProvider(provider))
		require.NoError(t, err)
		defer locker.Close()
		sched, err := scheduler.New(locker, scheduler.WithClock(clock), scheduler.WithLogger(quiet()), scheduler.WithTracerProvider(provider))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, sched.Add("report", "1 * * * *", func(context.Context, scheduler.Run) error {
			cancel()
			return errors.New("no paper")
		}, scheduler.WithLocation(time.FixedZone("", 3600))))
		require.Empty(t, exporter.GetSpans(), "adding a job is worth no span")
		require.NoError(t, sched.Run(ctx))

		var run, acquire tracetest.SpanStub
		for _, s := range exporter.GetSpans() {
			switch s.Name {
			case "scheduler.run":
				run = s
			case "redlock.acquire":
				if attrs := attribute.NewSet(s.Attributes...); attrs.HasValue("quorate.name") {
					if name, _ := attrs.Value("quorate.name"); name.AsString() == "job/report" {
						acquire = s
					}
				}
			}
		}
		require.Len(t, run.Links, 1)
		assert.Equal(t, acquire.SpanContext, run.Links[0].SpanContext)
		attrs := attribute.NewSet(run.Attributes...)
		for key, want := range map[attribute.Key]string{
			"quorate.job": "report", "quorate.scheduled": "2000-01-01T01:01:00+01:00", "quorate.attempt": "1", "quorate.outcome": "failed",
		} {
			got, _ := attrs.Value(key)
			assert.Equal(t, want, got.String(), key)
		}
		token, _ := attrs.Value("quorate.token")
		assert.Positive(t, token.AsInt64())
		assert.Equal(t, codes.Error, run.Status.Code)
		assert.Equal(t, "no paper", run.Status.Description)
	})
}

func TestMetricsCountTicksByOutcomeAndReason(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		reader := metric.NewManualReader()
		a := w.replica("a", scheduler.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
		n := 0
		a.add("*/10 * * * * *", func(context.Context, *replica, scheduler.Run) error {
			n++
			switch n {
			case 2:
				return errors.New("no paper")
			case 3:
				panic("no toner")
			case 4:
				time.Sleep(12 * time.Second)
			}
			return nil
		})
		run(a)
		w.at(55 * time.Second)
		a.clock.Suspend(40 * time.Second) // 1:35
		w.at(57 * time.Second)
		a.shutDown()

		var data metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(t.Context(), &data))
		require.Len(t, data.ScopeMetrics, 1)
		require.Equal(t, "github.com/quorate/quorate/scheduler", data.ScopeMetrics[0].Scope.Name)
		ticks := map[string]int64{}
		var lags, durations uint64
		for _, m := range data.ScopeMetrics[0].Metrics {
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				require.Equal(t, "quorate.scheduler.ticks", m.Name)
				for _, p := range d.DataPoints {
					job, _ := p.Attributes.Value("quorate.job")
					assert.Equal(t, "tick", job.AsString())
					outcome, _ := p.Attributes.Value("quorate.outcome")
					reason, _ := p.Attributes.Value("quorate.reason")
					ticks[outcome.AsString()+" "+reason.AsString()] = p.Value
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					switch m.Name {
					case "quorate.scheduler.start.lag":
						lags += p.Count
						assert.InDelta(t, 6, p.Sum, 0.5, "the last one started late")
					case "quorate.scheduler.run.duration":
						durations += p.Count
						if outcome, _ := p.Attributes.Value("quorate.outcome"); outcome.AsString() == "ran" {
							assert.InDelta(t, 12, p.Sum, 0.5)
						}
					}
				}
			}
		}
		assert.Equal(t, map[string]int64{"ran ": 3, "failed ": 1, "panicked ": 1, "missed overlap": 1, "missed late": 3}, ticks)
		assert.EqualValues(t, 5, lags)
		assert.EqualValues(t, 5, durations)
	})
}

func TestTheLogSaysWhatAnOperatorMustKnow(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var log lines
		a := w.replica("a", scheduler.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		n := 0
		a.add("*/10 * * * * *", func(context.Context, *replica, scheduler.Run) error {
			n++
			if n == 2 {
				time.Sleep(12 * time.Second)
				return errors.New("no paper")
			}
			return nil
		})
		run(a)
		w.at(15 * time.Second)
		require.Empty(t, log.String(), "a tick that was run is no news")
		w.at(35 * time.Second)
		assert.Contains(t, log.String(), `level=WARN msg="scheduler: tick missed" job=tick scheduled=2000-01-01T00:00:30.000Z kind=scheduled outcome=missed reason=overlap`)
		assert.Contains(t, log.String(), `level=ERROR msg="scheduler: run failed" job=tick scheduled=2000-01-01T00:00:20.000Z`)
		assert.Contains(t, log.String(), "no paper")
	})
}

// lines is a log that may be read while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
