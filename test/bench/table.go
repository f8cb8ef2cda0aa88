package main

import "strings"

// A table is one of a page, or of the terminal.
type table struct {
	Caption string
	Head    []string
	Lines   [][]string
}

func (t *table) add(cells ...string) { t.Lines = append(t.Lines, cells) }

// markdown is the table with columns that line up, to be read in both.
func (t table) markdown() string {
	widths := make([]int, len(t.Head))
	for _, line := range append([][]string{t.Head}, t.Lines...) {
		for i, cell := range line {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	var b strings.Builder
	if t.Caption != "" {
		b.WriteString(t.Caption + "\n\n")
	}
	write := func(line []string) {
		for i, cell := range line {
			b.WriteString("| " + cell + strings.Repeat(" ", widths[i]-len([]rune(cell))+1))
		}
		b.WriteString("|\n")
	}
	write(t.Head)
	for _, w := range widths {
		b.WriteString("|" + strings.Repeat("-", w+2))
	}
	b.WriteString("|\n")
	for _, line := range t.Lines {
		write(line)
	}
	return b.String()
}
