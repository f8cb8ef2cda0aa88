package main

import (
	"fmt"
	"strings"
)

const preamble = `# The checked model

Written by ` + "`make model`" + `; do not edit. %s searched the models in
[test/model](../test/model/doc.go): [lease.pml](../test/model/lease.pml) is the protocol with three
nodes, [clock.pml](../test/model/clock.pml) the arithmetic of time behind it. What they leave out, and
why the protocol is safe in general, is said in [safety.md](safety.md).

## Properties

| name | what holds in every state |
|---|---|
`

// markdown is the report as a page. It is the same for the same models: times are left out.
func (r *report) markdown(version string) string {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, preamble, version)
	for _, p := range properties {
		_, _ = fmt.Fprintf(&b, "| `%s` | %s |\n", p[0], p[1])
	}
	b.WriteString(`
## The protocol

Each configuration was searched to its end: every interleaving, with states kept whole (no
bitstate, no hashing) and none cut off. In all of them all properties hold. C: acquisitions, or
clients in the clock model; P: proposals of each; E: extensions of each; K: highest token; W: tokens
reserved by each. The bold ones are searched by ` + "`make test`" + ` as well.

| configuration | flags | states | depth | what is in it |
|---|---|---:|---:|---|
`)
	for i := range r.searches {
		b.WriteString(r.searches[i].row() + "\n")
	}
	b.WriteString(`
## The mutants

Each breaks one rule. The model has to fail with the property named, and does; the steps are those
of the shortest way there, or, where marked ≤, of the first that was found.
` + "`cd test && go run ./model -trace NAME`" + ` shows the shortest.

| mutant | what is broken | caught in | property violated | steps |
|---|---|---|---|---:|
`)
	for i := range r.mutants {
		if m := &r.mutants[i]; m.mutant.property != "" {
			b.WriteString(m.row() + "\n")
		}
	}
	b.WriteString(`
Some rules protect less than one may think. These were searched to the end, and nothing fails:

| mutant | what is broken | searched | states |
|---|---|---|---:|
`)
	for i := range r.mutants {
		if m := &r.mutants[i]; m.mutant.property == "" {
			b.WriteString(m.row() + "\n")
		}
	}
	b.WriteString(`
` + "`extension, unfreed`" + ` is the configuration ` + "`extension`" + ` without the property
` + "`frees_for_good`" + `: with that a dead lease's lock cannot come back, neither mutual exclusion nor the
order of tokens hang on it.
`)
	return b.String()
}

// row is the result as a line of a table. The states of a violated property are those visited
// until then, and say nothing.
func (r *result) row() string {
	c, m := &r.configuration, &r.mutant
	switch {
	case m.flag == "":
		name := c.name
		if c.quick {
			name = "**" + name + "**"
		}
		return fmt.Sprintf("| %s | `%s` | %d | %d | %s |", name, strings.Join(c.flags, " "), r.states, r.depth, c.what)
	case m.property == "":
		return fmt.Sprintf("| `%s` | %s | %s | %d |", m.flag, m.what, c.name, r.states)
	}
	atMost := ""
	if !m.shortest() {
		atMost = "≤ "
	}
	return fmt.Sprintf("| `%s` | %s | %s | `%s` | %s%d |", m.flag, m.what, c.name, r.violated, atMost, len(r.trace))
}
