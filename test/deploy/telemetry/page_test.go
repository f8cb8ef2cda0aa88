package telemetry

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/scheduler"
)

const page = "../../../docs/telemetry.md"

// table gives the cells of a table of the page, found by the first cell of its header.
func table(t *testing.T, section, first string) [][]string {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	_, text2, found := strings.Cut(string(text), "\n## "+section+"\n")
	require.True(t, found, "no section %q", section)
	_, rest, found := strings.Cut(text2, "\n| "+first+" |")
	require.True(t, found, "no table of %q", first)
	var rows [][]string
	for line := range strings.Lines(rest) {
		if len(rows) > 0 && !strings.HasPrefix(line, "|") {
			break
		}
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	require.NotEmpty(t, rows)
	return rows
}

var code = regexp.MustCompile("`([^`]*)`")

// codes are what a cell has in backquotes, sorted.
func codes(cell string) []string {
	all := []string{}
	for _, m := range code.FindAllStringSubmatch(cell, -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return all
}

// everything makes all that there is to tell happen once.
func everything(w *world) {
	t, ctx := w.t, w.t.Context()
	stuck := false
	p := plan{
		locker: []redlock.Option{redlock.WithMetricName(kindOf)},
		lead: func(ctx context.Context, _ leader.Term) error {
			<-ctx.Done()
			if stuck {
				stuck = false
				sleep(20 * time.Second)
			}
			return nil
		},
		run: func(ctx context.Context, run scheduler.Run) error {
			if run.Scheduled.Minute() == 3 {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return nil
		},
		job: []scheduler.JobOption{scheduler.WithLabels(map[string]string{"team": "billing"}), scheduler.WithTimeout(10 * time.Second)},
	}
	w.start(p, "a", "b")
	p.spec = "*/2 * * * *"
	w.start(p, "c")
	w.warmUp()

	a := w.replicas[0]
	lease, err := a.locker.Acquire(ctx, "sku:1")
	require.NoError(t, err)
	require.NoError(t, lease.Extend(ctx))
	_, err = w.replicas[1].locker.TryAcquire(ctx, "sku:1")
	require.ErrorIs(t, err, redlock.ErrTaken)
	require.NoError(t, lease.Release(ctx))
	_, err = a.locker.TryAcquire(ctx, "sku:1") // and forgets it
	require.NoError(t, err)
	require.NoError(t, a.guard.DoAll(ctx, []string{"sku:2", "sku:3"}, nothing))
	b, err := fencing.NewBatcher(a.guard, func(context.Context, string, redlock.Token, []int) error { return nil })
	require.NoError(t, err)
	require.NoError(t, b.Do(ctx, "sku:2", 1))
	require.Error(t, a.gate.Admit(ctx, "sku:42", 1))
	require.ErrorIs(t, w.leads().elector.Transfer(ctx, "nobody"), leader.ErrHeirAbsent)
	stuck = true
	require.NoError(t, w.leads().elector.Resign(ctx))
	w.pass(3 * time.Minute)
	require.NoError(t, b.Do(ctx, "sku:2", 2))
	w.pass(time.Minute)
}

func TestTheTablesOfMetricsAreWhatComesOut(t *testing.T) {
	type told struct{ kind, attributes string }
	got, exposed := map[string]told{}, map[string]bool{}
	keys := map[string]map[string]bool{}
	simulate(t, func(w *world) {
		everything(w)
		for _, r := range w.replicas {
			var data metricdata.ResourceMetrics
			require.NoError(w.t, r.reader.Collect(w.t.Context(), &data))
			for _, scope := range data.ScopeMetrics {
				for _, m := range scope.Metrics {
					kind, sets := describe(t, m.Data)
					if keys[m.Name] == nil {
						keys[m.Name] = map[string]bool{}
					}
					for _, s := range sets {
						for _, kv := range s.ToSlice() {
							keys[m.Name][string(kv.Key)] = true
						}
					}
					got[m.Name] = told{kind: kind + ", " + m.Unit}
				}
			}
			families, err := r.registry.Gather()
			require.NoError(w.t, err)
			for _, f := range families {
				exposed[f.GetName()] = true
				assert.NotEmpty(t, f.GetHelp(), f.GetName())
				if f.GetType() == dto.MetricType_HISTOGRAM && strings.HasSuffix(f.GetName(), "_seconds") {
					bounds := f.GetMetric()[0].GetHistogram().GetBucket()
					assert.Less(t, bounds[0].GetUpperBound(), 1.0, "%s has bounds that are none for seconds", f.GetName())
				}
			}
		}
	})
	for name, g := range got {
		all := []string{}
		for key := range keys[name] {
			all = append(all, key)
		}
		slices.Sort(all)
		got[name] = told{g.kind, strings.Join(all, " ")}
	}
	delete(exposed, "target_info")

	want, wantExposed := map[string]told{}, map[string]bool{}
	for _, row := range table(t, "Metrics", "metric") {
		require.Len(t, row, 5, row)
		want[codes(row[0])[0]] = told{row[2], strings.Join(codes(row[3]), " ")}
		wantExposed[codes(row[1])[0]] = true
	}
	assert.Equal(t, want, got)
	assert.Equal(t, wantExposed, exposed)
}

func describe(t *testing.T, a metricdata.Aggregation) (kind string, sets []attribute.Set) {
	t.Helper()
	switch d := a.(type) {
	case metricdata.Histogram[float64]:
		return "histogram", setsOf(d.DataPoints, func(p metricdata.HistogramDataPoint[float64]) attribute.Set { return p.Attributes })
	case metricdata.Histogram[int64]:
		return "histogram", setsOf(d.DataPoints, func(p metricdata.HistogramDataPoint[int64]) attribute.Set { return p.Attributes })
	case metricdata.Gauge[int64]:
		return "gauge", setsOf(d.DataPoints, func(p metricdata.DataPoint[int64]) attribute.Set { return p.Attributes })
	case metricdata.Gauge[float64]:
		return "gauge", setsOf(d.DataPoints, func(p metricdata.DataPoint[float64]) attribute.Set { return p.Attributes })
	case metricdata.Sum[int64]:
		kind = "up-down counter"
		if d.IsMonotonic {
			kind = "counter"
		}
		return kind, setsOf(d.DataPoints, func(p metricdata.DataPoint[int64]) attribute.Set { return p.Attributes })
	}
	require.Failf(t, "a kind of metric that is not expected", "%T", a)
	return "", nil
}

func setsOf[P any](points []P, of func(P) attribute.Set) []attribute.Set {
	var sets []attribute.Set
	for _, p := range points {
		sets = append(sets, of(p))
	}
	return sets
}

func TestLeasesHaveNoNamesOnMetricsUnlessThatIsSwitchedOn(t *testing.T) {
	w := simulate(t, func(w *world) {
		w.start(plan{}, three...)
		w.warmUp()
	})
	for _, o := range w.scraped.all {
		if strings.HasPrefix(o.labels.Get("__name__"), "quorate_redlock") {
			assert.Empty(t, o.labels.Get("quorate_name"), o.labels)
		}
	}
}

func TestTheTableOfSpansIsWhatComesOut(t *testing.T) {
	w := simulate(t, everything)
	keys := map[string]map[string]bool{}
	for _, s := range w.spans.Ended() {
		if keys[s.Name()] == nil {
			keys[s.Name()] = map[string]bool{}
		}
		for _, kv := range s.Attributes() {
			key := string(kv.Key)
			if strings.HasPrefix(key, "quorate.label.") {
				key = "quorate.label.*"
			}
			keys[s.Name()][key] = true
		}
	}
	got := map[string][]string{}
	for name, of := range keys {
		for key := range of {
			got[name] = append(got[name], key)
		}
		slices.Sort(got[name])
	}
	want := map[string][]string{}
	documented := []string{}
	for _, row := range table(t, "Spans", "attribute") {
		documented = append(documented, codes(row[0])...)
	}
	for _, row := range table(t, "Spans", "span") {
		require.Len(t, row, 3, row)
		want[codes(row[0])[0]] = codes(row[2])
		assert.Subset(t, documented, codes(row[2]))
	}
	assert.Equal(t, want, got)
}

func TestThePageSaysWhatToDoAboutEachAlert(t *testing.T) {
	var documented, defined []string
	for _, row := range table(t, "Alerts", "alert") {
		require.Len(t, row, 3, row)
		assert.NotEmpty(t, row[2], row[0])
		documented = append(documented, codes(row[0])...)
	}
	for _, r := range rules(t) {
		defined = append(defined, r.Alert)
		assert.NotEmpty(t, r.Annotations["summary"], r.Alert)
		assert.Contains(t, []string{"critical", "warning", "info"}, r.Labels["severity"], r.Alert)
	}
	assert.ElementsMatch(t, defined, documented)
}

// logged finds the messages of the logger above debug level: those of calls, and those that are put into a
// variable for one.
var logged = regexp.MustCompile(`(?:(?:Warn|Info|Error)(?:Context)?\((?:[\w.]+, )?|Log\([^"]*, |level, msg = slog\.Level\w+, )"((?:redlock|leader|scheduler|fencing): [^"]+)"`)

const warningsOfNodes = "has connected replicas"

func TestThePageHasEveryMessageOfTheLog(t *testing.T) {
	var documented []string
	for _, row := range table(t, "What is logged", "level") {
		require.Len(t, row, 3, row)
		message, _, _ := strings.Cut(row[1], ";")
		documented = append(documented, message)
	}
	var found []string
	for _, pkg := range []string{"redlock", "leader", "scheduler", "fencing"} {
		files, err := filepath.Glob("../../../" + pkg + "/*.go")
		require.NoError(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, m := range logged.FindAllStringSubmatch(string(source), -1) {
				_, message, _ := strings.Cut(m[1], ": ")
				message, _, _ = strings.Cut(message, ";")
				if message != "node " { // what follows is warningsOfNodes
					found = append(found, message)
				}
			}
		}
	}
	require.Greater(t, len(found), 20)
	found = append(found, warningsOfNodes)
	slices.Sort(found)
	slices.Sort(documented)
	assert.Equal(t, slices.Compact(found), documented)
}
