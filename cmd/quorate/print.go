package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/urfave/cli/v3"
)

// isJSON reports whether the output is for programs.
func isJSON(cmd *cli.Command) (bool, error) {
	switch format := cmd.String("output"); format {
	case "table":
		return false, nil
	case "json":
		return true, nil
	default:
		return false, usagef("--output %q: table or json", format)
	}
}

// printJSON prints one value on lines of its own.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// A table is rows of cells under headings, printed when all are there.
type table struct{ rows [][]string }

func newTable(headings ...string) *table { return &table{rows: [][]string{headings}} }

func (t *table) add(cells ...string) {
	for i, cell := range cells {
		cells[i] = printable(cell)
	}
	t.rows = append(t.rows, cells)
}

func (t *table) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range t.rows {
		if _, err := fmt.Fprintln(tw, strings.TrimRight(strings.Join(row, "\t"), "\t")); err != nil {
			return err
		}
	}
	return tw.Flush()
}

// printFound prints the rows that were there before an error, if any: headings alone would say that there are none.
func (t *table) printFound(w io.Writer) error {
	if len(t.rows) == 1 {
		return nil
	}
	return t.print(w)
}

// printable is text that does nothing to a terminal: names and owners may be anybody's.
func printable(text string) string {
	for _, r := range text {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			quoted := strconv.QuoteToGraphic(text)
			return quoted[1 : len(quoted)-1]
		}
	}
	return text
}

// brief is a duration for people.
func brief(d time.Duration) string {
	switch {
	case d <= 0:
		return "-"
	case d < 10*time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < 10*time.Second:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
