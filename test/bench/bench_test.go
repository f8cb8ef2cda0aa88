package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(clientEnv); text != "" {
		if err := runClient(text); err != nil {
			fmt.Fprintln(os.Stderr, "bench client:", err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// How fast anything is, is for the page: here another process may have the machine.
func TestEveryRowIsMeasuredAndOnThePage(t *testing.T) {
	dir := t.TempDir()
	page, cache := filepath.Join(dir, "performance.md"), filepath.Join(dir, "bench.json")
	out := &lines{t}
	require.NoError(t, perform(t.Context(), tinySizes(), []string{"-out", page, "-cache", cache}, out))

	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(text), "redis-server")
	for _, row := range rows {
		require.Contains(t, string(text), fmt.Sprintf("\n## %d. %s\n", row.number, row.title))
		require.Regexp(t, fmt.Sprintf(`(?m)^\| %d +\| `, row.number), string(text), "it has an aim")
	}
	requireTables(t, string(text))
	chart, err := os.ReadFile(filepath.Join(dir, "performance.svg"))
	require.NoError(t, err)
	requireXML(t, string(chart))

	r, err := loadRecord(cache, thisMachine())
	require.NoError(t, err)
	require.Len(t, r.Findings, len(rows), "the next run finds them")
	again := filepath.Join(dir, "again")
	require.NoError(t, os.Mkdir(again, 0o700))
	require.NoError(t, perform(t.Context(), tinySizes(), []string{"-render", "-out", filepath.Join(again, "performance.md"), "-cache", cache}, out))
	rendered, err := os.ReadFile(filepath.Join(again, "performance.md"))
	require.NoError(t, err)
	require.Equal(t, string(text), string(rendered), "the page is made of what is kept")
	r, err = loadRecord(cache, machine{CPU: "another"})
	require.NoError(t, err)
	require.Empty(t, r.Findings, "figures of two machines are not mixed")
}

// requireTables sees that every line of a table has the columns of its head.
func requireTables(t *testing.T, page string) {
	t.Helper()
	columns := 0
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "|") {
			columns = 0
			continue
		}
		if columns == 0 {
			columns = strings.Count(line, "|")
		}
		require.Equal(t, columns, strings.Count(line, "|"), line)
		require.NotContains(t, line, "NaN")
	}
}

func requireXML(t *testing.T, text string) {
	t.Helper()
	require.NotContains(t, text, "NaN")
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); err != nil {
			require.ErrorIs(t, err, io.EOF)
			return
		}
	}
}

// lines go to the log of a test.
type lines struct{ t *testing.T }

func (l *lines) Write(b []byte) (int, error) {
	l.t.Log(strings.TrimSuffix(string(b), "\n"))
	return len(b), nil
}

func TestARowThatDoesNotExistIsRefused(t *testing.T) {
	_, err := choose("1,13")
	require.ErrorContains(t, err, "13")
	chosen, err := choose("12, 1")
	require.NoError(t, err)
	require.Equal(t, 12, chosen[0].number)
}

func TestAnAimIsKeptOnTheRightSideOfItsBound(t *testing.T) {
	require.True(t, atLeast("", 10, 10, "").kept())
	require.False(t, atLeast("", 9.9, 10, "").kept())
	require.True(t, atMost("", 10, 10, "").kept())
	require.False(t, atMost("", 10.1, 10, "").kept())
	require.InDelta(t, 2, atLeast("", 20, 10, "").margin(), 0)
	require.InDelta(t, 2, atMost("", 5, 10, "").margin(), 0)
	require.InDelta(t, 0.5, atMost("", 20, 10, "").margin(), 0)
	require.Positive(t, atMost("", 0, 10, "").margin(), "nothing at all is better than some")
}

func TestFiguresHaveThreeDigits(t *testing.T) {
	for figure, text := range map[float64]string{
		1234567: "1,234,567", 99_999.7: "100,000", 1234: "1234", 123.4: "123", 12.34: "12.3", 1.234: "1.23", 3: "3", 0.01234: "0.012", 0: "0",
	} {
		require.Equal(t, text, number(figure))
	}
}

func TestTheLeastNumberOfMeasurementsHasItsQuantiles(t *testing.T) {
	require.Zero(t, quantile([]time.Duration(nil), 0.99))
	require.Equal(t, 2, quantile([]int{1, 2, 3, 4}, 0.5))
	require.Equal(t, 4, quantile([]int{1, 2, 3, 4}, 0.99))
	require.Equal(t, 1, median([]int{9, 1}))
	require.Zero(t, mean([]int(nil)))
}

func TestFairnessIsOneAndTheLeastIsOneOfThemAll(t *testing.T) {
	require.InDelta(t, 1, jain([]int{5, 5, 5, 5}), 1e-9)
	require.InDelta(t, 0.25, jain([]int{20, 0, 0, 0}), 1e-9)
	require.Zero(t, jain([]int{0, 0}))
}

// A checker that is blind would pass everything.

func TestTwoThatHoldTheNameAtOneTimeAreFound(t *testing.T) {
	crewOf := func(one, two spell) *crew {
		c := &crew{}
		for _, s := range []spell{one, two} {
			c.members = append(c.members, &member{crew: c, events: []event{{Kind: "held", Spells: []spell{s}}}})
		}
		return c
	}
	spells, err := crewOf(spell{Token: 1, Acquired: 10, Released: 20}, spell{Token: 2, Acquired: 20, Released: 30}).spells(0, 100)
	require.NoError(t, err)
	took, n := handOvers(spells)
	require.Equal(t, []time.Duration{0}, took)
	require.InDelta(t, 1, n, 0)
	require.Equal(t, []int{1, 1}, shares(spells, 2))

	_, err = crewOf(spell{Token: 1, Acquired: 10, Released: 20}, spell{Token: 2, Acquired: 19, Released: 30}).spells(0, 100)
	require.ErrorContains(t, err, "at one time")
	_, err = crewOf(spell{Token: 2, Acquired: 10, Released: 20}, spell{Token: 1, Acquired: 20, Released: 30}).spells(0, 100)
	require.ErrorContains(t, err, "token")
}
