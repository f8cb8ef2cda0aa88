package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
)

const head = `# Mutants

Each safety rule is switched off, one at a time, and something must notice: a rule whose removal
nothing notices is untested, or is no rule. This page is written by ` + "`make mutants`" + `.

A mutant is a change of the source that is put in place for one build
(` + "`go test -overlay`" + `), so that what is released holds no trace of it. The
[simulation](../internal/sim/doc.go) lives fresh seeds of %v simulated time until one fails; how
many that takes differs from run to run. The model's word is that of [model.md](model.md).

| rule switched off | where | simulation: seeds | what it saw | model |
|---|---|---|---|---|
`

// table is the page: the rows of what was run, and of the others those that the page had before.
func table(results []result, before string) string {
	rows := map[string]string{}
	for line := range strings.Lines(before) {
		if name, rest, found := strings.Cut(strings.TrimPrefix(line, "| "), " | `"); found {
			rows[name] = "| " + name + " | `" + rest
		}
	}
	for i := range results {
		rows[results[i].name] = results[i].row()
	}
	var b strings.Builder
	fmt.Fprintf(&b, head, *span)
	for _, m := range mutants {
		b.WriteString(rows[m.name])
	}
	return b.String()
}

func (r *result) row() string {
	seeds, saw := fmt.Sprint(r.seeds), r.how
	if !r.caught {
		seeds, saw = "–", fmt.Sprintf("nothing in %d seeds", r.seeds)
	}
	if r.tested {
		_, name, _ := strings.Cut(r.test, " ")
		saw += fmt.Sprintf("; `%s` fails", name)
	}
	model := "–"
	if r.flag != "" {
		model = fmt.Sprintf("`%s`: %s", r.flag, r.model)
	}
	return fmt.Sprintf("| %s | `%s` | %s | %s | %s |\n", r.name, r.file, seeds, cell(saw), model)
}

var (
	host   = regexp.MustCompile(`host-\d+/\w+`)
	digits = regexp.MustCompile(`\d{10,}`)
)

// cell shortens what was seen to what a reader needs, and takes out what differs between runs.
func cell(s string) string {
	s = host.ReplaceAllString(s, "an owner")
	s = digits.ReplaceAllString(s, "…")
	if r := []rune(s); len(r) > 120 {
		s = string(r[:120]) + "…"
	}
	return strings.ReplaceAll(s, "|", "\\|")
}

var row = regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\|(.*)$")

// modelTable reads what the model says of its mutants: by flag, empty where it does not catch it.
func modelTable(file string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	says := map[string]string{}
	for _, found := range row.FindAllStringSubmatch(string(text), -1) {
		if !strings.Contains(found[2], "not caught") {
			says[found[1]] = "caught"
		}
	}
	return says, nil
}
