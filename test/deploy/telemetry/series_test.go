package telemetry

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// job is the label that the scrape gives to all series.
const job = "service"

// series are what was scraped, in memory, for Prometheus' engine to query.
type series struct {
	all   map[uint64]*one
	begin time.Time
	end   time.Time
}

type one struct {
	labels  labels.Labels
	samples []chunks.Sample
}

func newSeries() *series { return &series{all: map[uint64]*one{}} }

// add takes what one target has answered. What it had before and has no more is stale, as in Prometheus.
func (s *series) add(at time.Time, instance string, families []*dto.MetricFamily) {
	if s.begin.IsZero() {
		s.begin = at
	}
	s.end = at
	for _, f := range families {
		for _, m := range f.GetMetric() {
			put := func(name string, v float64, more ...string) {
				s.put(at, v, append([]string{labels.MetricName, name, "job", job, "instance", instance}, more...), m.GetLabel())
			}
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				put(f.GetName(), m.GetCounter().GetValue())
			case dto.MetricType_GAUGE:
				put(f.GetName(), m.GetGauge().GetValue())
			case dto.MetricType_HISTOGRAM:
				h := m.GetHistogram()
				for _, b := range h.GetBucket() {
					put(f.GetName()+"_bucket", float64(b.GetCumulativeCount()), "le", strconv.FormatFloat(b.GetUpperBound(), 'g', -1, 64))
				}
				put(f.GetName()+"_bucket", float64(h.GetSampleCount()), "le", "+Inf")
				put(f.GetName()+"_sum", h.GetSampleSum())
				put(f.GetName()+"_count", float64(h.GetSampleCount()))
			}
		}
	}
	s.gone(at, instance)
}

func (s *series) put(at time.Time, v float64, pairs []string, more []*dto.LabelPair) {
	for _, l := range more {
		pairs = append(pairs, l.GetName(), l.GetValue())
	}
	ls := labels.FromStrings(pairs...)
	o := s.all[ls.Hash()]
	if o == nil {
		o = &one{labels: ls}
		s.all[ls.Hash()] = o
	}
	o.samples = append(o.samples, sample{timestamp.FromTime(at), v})
}

// gone marks the series of a target that had no sample at this time.
func (s *series) gone(at time.Time, instance string) {
	now := timestamp.FromTime(at)
	for _, o := range s.all {
		if last := o.samples[len(o.samples)-1]; o.labels.Get("instance") == instance && last.T() < now && !value.IsStaleNaN(last.F()) {
			o.samples = append(o.samples, sample{now, math.Float64frombits(value.StaleNaN)})
		}
	}
	s.end = at
}

// names are those of all metrics that were scraped.
func (s *series) names() map[string]bool {
	names := map[string]bool{}
	for _, o := range s.all {
		names[o.labels.Get(labels.MetricName)] = true
	}
	return names
}

// Querier makes series a storage.Queryable.
func (s *series) Querier(mint, maxt int64) (storage.Querier, error) {
	return querier{s, mint, maxt}, nil
}

type querier struct {
	series     *series
	mint, maxt int64
}

func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found := &set{at: -1}
	for _, o := range q.series.all {
		if slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(o.labels.Get(m.Name)) }) {
			continue
		}
		var within []chunks.Sample
		for _, x := range o.samples {
			if q.mint <= x.T() && x.T() <= q.maxt {
				within = append(within, x)
			}
		}
		found.series = append(found.series, storage.NewListSeries(o.labels, within))
	}
	slices.SortFunc(found.series, func(a, b storage.Series) int {
		return cmp.Or(labels.Compare(a.Labels(), b.Labels()))
	})
	return found
}

func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) Close() error { return nil }

type set struct {
	series []storage.Series
	at     int
}

func (s *set) Next() bool                        { s.at++; return s.at < len(s.series) }
func (s *set) At() storage.Series                { return s.series[s.at] }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }

type sample struct {
	t int64
	v float64
}

func (s sample) T() int64                      { return s.t }
func (s sample) F() float64                    { return s.v }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }
