package docs

import (
	"go/ast"
	"go/doc"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A type has an example when pkg.go.dev shows one with it: at the type, at one of its methods, or at a
// function that returns it. For a type that is nothing but some named values it is enough that an
// example of its package uses one of them.
func TestEachExportedTypeHasAnExample(t *testing.T) {
	found := 0
	for _, dir := range packages {
		p := parse(t, dir)
		used := valuesUsed(p)
		for _, typ := range p.Types {
			found++
			assert.True(t, shown(typ) || namesOnly(typ, used), "%s.%s has no example", p.Name, typ.Name)
		}
	}
	require.Greater(t, found, 60, "the types were not found")
}

func TestEachExampleHasAnOutput(t *testing.T) {
	for _, dir := range packages {
		p := parse(t, dir)
		for name, ex := range examples(p) {
			if reason := noOutput[p.Name+"."+name]; reason != "" {
				assert.Empty(t, ex.Output, "%s.%s has an output: take it off the list", p.Name, name)
				continue
			}
			assert.True(t, ex.Output != "" || ex.EmptyOutput, "%s.Example%s is compiled and not run", p.Name, name)
		}
	}
}

// noOutput are the examples that are compiled and not run, with the reason.
var noOutput = map[string]string{}

func shown(t *doc.Type) bool {
	n := len(t.Examples)
	for _, f := range slices.Concat(t.Funcs, t.Methods) {
		n += len(f.Examples)
	}
	return n > 0
}

// namesOnly tells whether a type has constants, of which an example uses one.
func namesOnly(t *doc.Type, used map[string]bool) bool {
	for _, group := range t.Consts {
		for _, name := range group.Names {
			if used[name] {
				return true
			}
		}
	}
	return false
}

// valuesUsed are the names after "package." in the examples of a package.
func valuesUsed(p *doc.Package) map[string]bool {
	used := map[string]bool{}
	for _, ex := range examples(p) {
		ast.Inspect(ex.Code, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == p.Name {
					used[sel.Sel.Name] = true
				}
			}
			return true
		})
	}
	return used
}

func examples(p *doc.Package) map[string]*doc.Example {
	all := map[string]*doc.Example{}
	add := func(list []*doc.Example) {
		for _, ex := range list {
			all[strings.TrimPrefix(ex.Name, "Example")] = ex
		}
	}
	add(p.Examples)
	for _, f := range p.Funcs {
		add(f.Examples)
	}
	for _, t := range p.Types {
		add(t.Examples)
		for _, f := range slices.Concat(t.Funcs, t.Methods) {
			add(f.Examples)
		}
	}
	return all
}
