package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// writePage writes the page, and its chart beside it.
func (r *record) writePage(file string) error {
	chart := strings.TrimSuffix(file, filepath.Ext(file)) + ".svg"
	if err := os.WriteFile(chart, []byte(r.chart()), 0o644); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(r.page(filepath.Base(chart))), 0o644)
}

// page is docs/performance.md.
func (r *record) page(chart string) string {
	var b strings.Builder
	b.WriteString(`# Performance

` + "`make bench`" + ` writes this page. It measures quorate and its peers side by side on one machine, clients and
redis-servers together, on loopback, in turn within one run; of each figure this is the median of the rounds. What is to be relied
on are the **ratios**: absolute figures are this machine's. quorate is always measured with fencing, which cannot be switched off;
no peer has it. All have their default options unless a row says otherwise.

`)
	if len(r.Findings) == 0 {
		b.WriteString("Nothing has been measured yet.\n")
		return b.String()
	}
	fmt.Fprintf(&b, "Machine: %s, %d cores, %s.\n", or(r.Machine.CPU, "unknown CPU"), r.Machine.Cores, r.Machine.System)
	var names []string
	for _, v := range r.Versions {
		names = append(names, v.Name+" "+v.Version)
	}
	fmt.Fprintf(&b, "With: %s.\n\n", strings.Join(names, ", "))
	fmt.Fprintf(&b, "![Each figure, as so many times better than its aim](%s)\n\n", chart)

	b.WriteString("## Aims\n\n")
	b.WriteString(r.aims().markdown())
	for _, f := range r.inOrder() {
		fmt.Fprintf(&b, "\n## %d. %s\n\n%s\n\n", f.Number, f.Title, f.How)
		for _, t := range f.Tables {
			b.WriteString(t.markdown() + "\n")
		}
		for _, note := range f.Notes {
			b.WriteString("- " + note + "\n")
		}
		if len(f.Notes) > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "Measured on %s, in %v; load average of the machine %s.\n", f.Date, f.Took.Round(time.Second), f.Load)
	}
	return b.String()
}

// aims are those of all rows.
func (r *record) aims() table {
	t := table{Head: []string{"row", "what", "measured", "aim", ""}}
	for _, f := range r.inOrder() {
		for _, a := range f.Aims {
			verdict := "kept"
			if !a.kept() {
				verdict = "**missed**"
			}
			t.add(fmt.Sprint(f.Number), f.Title+": "+a.What, unit(a.Figure, a.Unit), a.bound(), verdict)
		}
	}
	return t
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
