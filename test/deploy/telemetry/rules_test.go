package telemetry

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/require"
)

const rulesFile = "../../../deploy/prometheus/alerts.yaml"

// evaluateEvery is how often Prometheus looks at rules, unless it is told otherwise.
const evaluateEvery = time.Minute

// rules are the alerts, read and checked as Prometheus does it: names, expressions and templates.
func rules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(rulesFile, false)
	require.Empty(t, errs)
	var all []rulefmt.Rule
	for _, g := range groups.Groups {
		all = append(all, g.Rules...)
	}
	require.NotEmpty(t, all)
	return all
}

// An alert that was raised, and about what.
type alert struct {
	name   string
	labels labels.Labels
	since  time.Time
}

// raised are the alerts that fire at some time of what was scraped. An alert fires when its expression had a
// result for the same labels in each evaluation for as long as it says.
func raised(t *testing.T, s *series) []alert {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e7, Timeout: time.Minute})
	defer func() { require.NoError(t, engine.Close()) }()
	var all []alert
	for _, r := range rules(t) {
		pending, fired := map[string]time.Time{}, map[string]bool{}
		for at := s.begin; !at.After(s.end); at = at.Add(evaluateEvery) {
			active := map[string]bool{}
			for _, x := range query(t, engine, s, r.Expr, at) {
				key := x.Metric.String()
				active[key] = true
				if pending[key].IsZero() {
					pending[key] = at
				}
				if !fired[key] && at.Sub(pending[key]) >= time.Duration(r.For) {
					fired[key] = true
					all = append(all, alert{r.Alert, x.Metric, at})
				}
			}
			for key := range pending {
				if !active[key] {
					delete(pending, key)
				}
			}
		}
	}
	return all
}

func query(t *testing.T, engine *promql.Engine, s *series, expr string, at time.Time) promql.Vector {
	t.Helper()
	q, err := engine.NewInstantQuery(context.Background(), s, nil, expr, at)
	require.NoError(t, err, expr)
	defer q.Close()
	result := q.Exec(context.Background())
	require.NoError(t, result.Err, expr)
	require.Empty(t, result.Warnings, expr)
	v, err := result.Vector()
	require.NoError(t, err, expr)
	return v
}
