package leader_test

import (
	"context"
	"errors"
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

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
)

// endings are all the ways in which a term can end, by outcome.
var endings = map[string]struct {
	lead   lead
	end    func(t *testing.T, f *redlocktest.Fleet, l *redlock.Locker, e *leader.Elector, r *run)
	opts   []leader.Option
	failed string // what the span says, if it is an error
}{
	"stepped_down": {lead: func(context.Context, leader.Term) error { return nil }},
	"failed":       {lead: func(context.Context, leader.Term) error { return errors.New("no disk") }, failed: "no disk"},
	"panicked":     {lead: func(context.Context, leader.Term) error { panic("no disk") }, failed: "no disk"},
	"released": {lead: func(ctx context.Context, _ leader.Term) error {
		lease, _ := redlock.LeaseFrom(ctx)
		return lease.Release(ctx)
	}},
	"resigned": {end: func(t *testing.T, _ *redlocktest.Fleet, _ *redlock.Locker, e *leader.Elector, _ *run) {
		require.NoError(t, e.Resign(t.Context()))
	}},
	"stopped": {end: func(_ *testing.T, _ *redlocktest.Fleet, _ *redlock.Locker, _ *leader.Elector, r *run) { r.stop() }},
	"closed": {end: func(_ *testing.T, _ *redlocktest.Fleet, l *redlock.Locker, _ *leader.Elector, _ *run) {
		_ = l.Close()
	}, failed: "locker closed"},
	"expired": {end: func(_ *testing.T, f *redlocktest.Fleet, _ *redlock.Locker, _ *leader.Elector, _ *run) {
		f.Partition()
	}, failed: "lease expired"},
	"lost": {end: func(t *testing.T, f *redlocktest.Fleet, _ *redlock.Locker, _ *leader.Elector, _ *run) {
		for _, c := range f.Clients() { // somebody interferes
			require.NoError(t, c.Set(t.Context(), redlock.DefaultKeyPrefix+name, "other", time.Hour).Err())
		}
	}, failed: "lease lost"},
	"term_limit": {opts: []leader.Option{leader.WithMaxTerm(5 * time.Second)}},
	"transferred": {end: func(t *testing.T, _ *redlocktest.Fleet, _ *redlock.Locker, e *leader.Elector, _ *run) {
		require.ErrorIs(t, e.Transfer(t.Context(), "nobody"), leader.ErrHeirAbsent)
	}},
	"unhealthy": {opts: []leader.Option{leader.WithHealthCheck(soonSick(), 0)}, failed: "no disk"},
}

// soonSick is a health check that fails from a moment after its first success on, for a while.
func soonSick() func(context.Context) error {
	var from time.Time
	return func(context.Context) error {
		if from.IsZero() {
			from = time.Now()
		}
		if ill := time.Since(from); ill > 3*time.Second && ill < 6*time.Second {
			return errors.New("no disk")
		}
		return nil
	}
}

func TestEveryEndOfATermIsTraced(t *testing.T) {
	for outcome, c := range endings {
		t.Run(outcome, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
				spans := tracetest.NewSpanRecorder()
				provider := trace.NewTracerProvider(trace.WithSpanProcessor(spans))
				ctx, parent := provider.Tracer("test").Start(t.Context(), "service")
				locker := newLocker(t, f, "a", redlock.WithTracerProvider(provider))
				e := newElector(t, locker, append(c.opts, leader.WithTracerProvider(provider))...)
				assert.Empty(t, spans.Ended(), "New is no event")
				if c.lead == nil {
					c.lead = untilTold
				}
				r := startIn(ctx, t, e, c.lead)
				term := r.leads(t)
				if c.end != nil {
					c.end(t, f, locker, e, r)
				}
				acquired, terms := map[attribute.Value]trace.ReadOnlySpan{}, []trace.ReadOnlySpan{}
				for len(terms) == 0 {
					time.Sleep(time.Second)
					for _, s := range spans.Ended() {
						switch s.Name() {
						case "redlock.acquire":
							acquired[attr(s.Attributes(), "quorate.token")] = s
						case "leader.term":
							terms = append(terms, s)
						}
					}
				}
				s := terms[0]
				number := attribute.Int64Value(int64(term.Number))
				assert.Equal(t, name, attr(s.Attributes(), "quorate.name").AsString())
				assert.Equal(t, number, attr(s.Attributes(), "quorate.token"))
				assert.Equal(t, "a", attr(s.Attributes(), "quorate.leader").AsString())
				assert.Equal(t, outcome, attr(s.Attributes(), "quorate.outcome").AsString())
				assert.Equal(t, parent.SpanContext().SpanID(), s.Parent().SpanID())
				require.Len(t, s.Links(), 1)
				assert.Equal(t, acquired[number].SpanContext(), s.Links()[0].SpanContext)
				if c.failed == "" {
					assert.Equal(t, codes.Unset, s.Status().Code)
				} else {
					assert.Equal(t, codes.Error, s.Status().Code)
					assert.Contains(t, s.Status().Description, c.failed)
				}
			})
		})
	}
}

func TestTheFunctionRunsInsideTheTermsSpan(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		spans := tracetest.NewSpanRecorder()
		provider := trace.NewTracerProvider(trace.WithSpanProcessor(spans))
		r := start(t, candidate(t, f, "a", leader.WithTracerProvider(provider)), func(ctx context.Context, term leader.Term) error {
			_, span := provider.Tracer("test").Start(ctx, "work")
			span.End()
			return untilTold(ctx, term)
		})
		r.leads(t)
		r.stop()
		require.NoError(t, r.wait(t))
		ended := spans.Ended()
		require.Len(t, ended, 2)
		assert.Equal(t, ended[1].SpanContext().SpanID(), ended[0].Parent().SpanID())
	})
}

func TestTermsAreCountedAndTimedByOutcome(t *testing.T) {
	for outcome, c := range endings {
		t.Run(outcome, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
				reader := metric.NewManualReader()
				locker := newLocker(t, f, "a")
				e := newElector(t, locker, append(c.opts, leader.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))...)
				lead := untilTold
				if c.lead != nil {
					lead = c.lead
				}
				r := start(t, e, func(ctx context.Context, term leader.Term) error {
					time.Sleep(2 * time.Second)
					return lead(ctx, term)
				})
				r.leads(t)
				assert.Equal(t, map[string]int64{name: 1}, leading(t, reader))
				time.Sleep(2500 * time.Millisecond)
				if c.end != nil {
					c.end(t, f, locker, e, r)
				}
				for counted(t, reader)[outcome] == 0 {
					time.Sleep(100 * time.Millisecond)
				}
				d := collect(t, reader)["quorate.leader.term.duration"].Data.(metricdata.Histogram[float64])
				require.NotEmpty(t, d.DataPoints)
				for _, p := range d.DataPoints {
					by, _ := p.Attributes.Value("quorate.outcome")
					assert.Equal(t, outcome, by.AsString())
					assert.Greater(t, p.Sum, 1.9)
				}
			})
		})
	}
}

func TestTheGaugeOfLeadingIsBoundedByTimeAndEndsWithRun(t *testing.T) {
	inBubble(t, func(t *testing.T, f *redlocktest.Fleet) {
		reader := metric.NewManualReader()
		e := candidate(t, f, "a", leader.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
		assert.Empty(t, leading(t, reader))
		other := start(t, candidate(t, f, "b"), untilTold)
		other.leads(t)
		hang := make(chan struct{})
		r := start(t, e, func(context.Context, leader.Term) error {
			<-hang
			return nil
		})
		time.Sleep(time.Minute)
		assert.Equal(t, map[string]int64{name: 0}, leading(t, reader))
		other.stop()
		r.leads(t)
		assert.Equal(t, map[string]int64{name: 1}, leading(t, reader))
		f.Partition()
		time.Sleep(ttl)
		assert.Equal(t, map[string]int64{name: 0}, leading(t, reader), "the function still runs")
		r.stop()
		close(hang)
		require.NoError(t, r.wait(t))
		assert.Empty(t, leading(t, reader))
	})
}

func attr(attrs []attribute.KeyValue, key attribute.Key) attribute.Value {
	for _, a := range attrs {
		if a.Key == key {
			return a.Value
		}
	}
	return attribute.Value{}
}

func collect(t *testing.T, reader *metric.ManualReader) map[string]metricdata.Metrics {
	t.Helper()
	var data metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &data))
	byName := map[string]metricdata.Metrics{}
	for _, s := range data.ScopeMetrics {
		for _, m := range s.Metrics {
			byName[m.Name] = m
		}
	}
	return byName
}

func counted(t *testing.T, reader *metric.ManualReader) map[string]int64 {
	t.Helper()
	counts := map[string]int64{}
	sum, _ := collect(t, reader)["quorate.leader.terms"].Data.(metricdata.Sum[int64])
	for _, p := range sum.DataPoints {
		by, _ := p.Attributes.Value("quorate.outcome")
		counts[by.AsString()] += p.Value
	}
	return counts
}

func leading(t *testing.T, reader *metric.ManualReader) map[string]int64 {
	t.Helper()
	values := map[string]int64{}
	gauge, _ := collect(t, reader)["quorate.leader.leading"].Data.(metricdata.Gauge[int64])
	for _, p := range gauge.DataPoints {
		of, _ := p.Attributes.Value("quorate.name")
		values[of.AsString()] = p.Value
	}
	return values
}
