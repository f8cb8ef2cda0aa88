package telemetry

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A dashboard is what these tests look at in Grafana's JSON.
type dashboard struct {
	UID        string `json:"uid"`
	Title      string
	Panels     []panel
	Templating struct{ List []variable }
}

type panel struct {
	ID         int
	Type       string
	Title      string
	Datasource *source
	GridPos    struct{ X, Y, W, H int }
	Targets    []struct {
		RefID        string `json:"refId"`
		Expr         string
		LegendFormat string
		Datasource   *source
	}
}

type source struct{ Type, UID string }

type variable struct{ Name, Type, Definition string }

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/grafana/quorate.json")
	require.NoError(t, err)
	var d dashboard
	require.NoError(t, json.Unmarshal(text, &d))
	return d
}

// filled is a query as Grafana sends it with all services and replicas chosen.
func filled(expr string) string {
	return strings.NewReplacer("$__rate_interval", "1m", "$job", ".+", "$instance", ".+").Replace(expr)
}

func TestEachPanelShowsSomethingOfARunInWhichEverythingHappens(t *testing.T) {
	w := simulate(t, everything)
	names := w.scraped.names()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e7, Timeout: time.Minute})
	defer func() { require.NoError(t, engine.Close()) }()
	shown := map[string]bool{}
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			expr, err := parser.ParseExpr(filled(target.Expr))
			require.NoError(t, err, target.Expr)
			assert.NotContains(t, filled(target.Expr), "$", "an unknown variable")
			parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
				if s, ok := n.(*parser.VectorSelector); ok {
					assert.True(t, names[s.Name], "%s: there is no metric %s", p.Title, s.Name)
					assert.Contains(t, s.String(), `job=~".+"`, "%s: the choice of a service has no effect", p.Title)
					assert.Contains(t, s.String(), `instance=~".+"`, "%s: the choice of a replica has no effect", p.Title)
					shown[strings.TrimSuffix(strings.TrimSuffix(s.Name, "_bucket"), "_count")] = true
				}
				return nil
			})
			some := false
			for at := w.scraped.begin; !at.After(w.scraped.end); at = at.Add(scrapeEvery) {
				for _, x := range query(t, engine, w.scraped, filled(target.Expr), at) {
					some = true
					for _, label := range legend.FindAllStringSubmatch(target.LegendFormat, -1) {
						assert.True(t, x.Metric.Has(label[1]) || label[1] == "quorate_reason", "%s: no label %s", p.Title, label[1])
					}
				}
			}
			assert.True(t, some, "%s shows nothing: %s", p.Title, target.Expr)
		}
	}
	for _, row := range table(t, "Metrics", "metric") {
		assert.True(t, shown[codes(row[1])[0]], "no panel shows %s", row[1])
	}
}

var legend = regexp.MustCompile(`{{(\w+)}}`)

func TestTheDashboardCanBeImportedAnywhere(t *testing.T) {
	d := readDashboard(t)
	require.Equal(t, "quorate", d.UID)
	variables := map[string]variable{}
	for _, v := range d.Templating.List {
		variables[v.Name] = v
	}
	require.Equal(t, "datasource", variables["datasource"].Type)
	require.Contains(t, variables, "job")
	require.Contains(t, variables, "instance")

	ids, rows := map[int]bool{}, []string{}
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		assert.False(t, ids[p.ID], "two panels have id %d", p.ID)
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				assert.Less(t, x, 24, p.Title)
				assert.Empty(t, taken[[2]int{x, y}], "%s is drawn over another", p.Title)
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			rows = append(rows, p.Title)
			continue
		}
		require.NotEmpty(t, p.Targets, p.Title)
		assert.Equal(t, &source{"prometheus", "${datasource}"}, p.Datasource, p.Title)
		for _, target := range p.Targets {
			assert.Equal(t, &source{"prometheus", "${datasource}"}, target.Datasource, p.Title)
		}
	}
	assert.Equal(t, []string{"Fleet health", "Leases", "Leaders", "Scheduler", "Guards"}, rows)
}
