package docs

import (
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// packages are those that users import, by their directories.
var packages = []string{"redlock", "redlock/redlocktest", "leader", "scheduler", "scheduler/gocron", "fencing", "dashboard"}

// notCompiled are blocks that are not compiled, by page and first line, each with its reason. A block
// that has gone has to go from here as well.
var notCompiled = map[string]string{}

func TestTheGoCodeOfThePagesCompiles(t *testing.T) {
	ours, err := newChecker(".", preamble)
	require.NoError(t, err)
	telemetry, err := newChecker(filepath.Join(Root, "examples/telemetry"), telemetryPreamble)
	require.NoError(t, err)
	blocks, err := AllBlocks(Root, "go")
	require.NoError(t, err)
	require.NotEmpty(t, blocks)
	checkers := map[string]*checker{}
	for _, b := range blocks {
		checkers[b.Page] = ours
	}
	checkers["docs/telemetry.md"] = telemetry
	left := map[string]bool{}
	for name := range notCompiled {
		left[name] = true
	}
	for _, b := range blocks {
		first, _, _ := strings.Cut(b.Text, "\n")
		key := b.Page + ": " + first
		switch {
		case b.Region != "": // compiled where it comes from
		case notCompiled[key] != "":
			delete(left, key)
		default:
			if err := checkers[b.Page].check(b.Page, b.Line, b.Text); err != nil {
				t.Errorf("%s: %v", b.At(), err)
			}
		}
	}
	require.Empty(t, left, "of blocks that are not compiled, these are no blocks of a page")
}

// A block of a comment is Go if it calls, assigns or declares; tables and pictures do not.
var looksLikeGo = regexp.MustCompile(`:= |\berr = |func\(|(?m)^func `)

func TestTheGoCodeInTheCommentsOfThePackagesCompiles(t *testing.T) {
	c, err := newChecker(".", preamble)
	require.NoError(t, err)
	for _, dir := range packages {
		p := parse(t, dir)
		found := 0
		for where, text := range comments(p) {
			for _, block := range p.Parser().Parse(text).Content {
				code, ok := block.(*comment.Code)
				if !ok || !looksLikeGo.MatchString(code.Text) {
					continue
				}
				found++
				if err := c.check(dir+"/"+where, 1, code.Text); err != nil {
					t.Errorf("%s, %s: %v\n%s", dir, where, err, code.Text)
				}
			}
		}
		require.NotZero(t, found, "package %s shows no code", dir)
	}
}

func TestWhatDoesNotCompileIsNoticed(t *testing.T) {
	c, err := newChecker(".", preamble)
	require.NoError(t, err)
	for name, text := range map[string]string{
		"an unknown option":    `locker, err = redlock.New(nodes, redlock.WithNothing())`,
		"a missing result":     `lease = locker.Acquire(ctx, "sku:42")`,
		"a wrong argument":     `err = guard.Do(ctx, "sku:42", func(ctx context.Context) error { return nil })`,
		"no Go":                `err := = 1`,
		"in a declaration":     "func f() error { return locker2.Close() }",
		"an unknown package":   "package x\n\nimport \"example.com/nothing\"\n\nvar _ = nothing.X\n",
		"an undeclared helper": "frobnicate(ctx)",
	} {
		require.Error(t, c.check(name, 1, text), name)
	}
	require.NoError(t, c.check("unused", 1, `lease, err := locker.Acquire(ctx, "sku:42")`), "unused is fine: a piece is a piece")
}

// parse reads a package with its examples.
func parse(t *testing.T, dir string) *doc.Package {
	t.Helper()
	files := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(Root, dir, "*.go"))
	require.NoError(t, err)
	var parsed []*ast.File
	for _, name := range names {
		if base := filepath.Base(name); strings.HasSuffix(base, "_test.go") && !strings.HasPrefix(base, "example") {
			continue
		}
		file, err := parser.ParseFile(files, name, nil, parser.ParseComments)
		require.NoError(t, err)
		parsed = append(parsed, file)
	}
	p, err := doc.NewFromFiles(files, parsed, "github.com/quorate/quorate/"+dir)
	require.NoError(t, err)
	return p
}

// comments are those of the package and of all that it exports, by what they are about.
func comments(p *doc.Package) map[string]string {
	all := map[string]string{"package": p.Doc}
	for _, f := range p.Funcs {
		all[f.Name] = f.Doc
	}
	for _, t := range p.Types {
		all[t.Name] = t.Doc
		for _, f := range t.Funcs {
			all[f.Name] = f.Doc
		}
		for _, m := range t.Methods {
			all[t.Name+"."+m.Name] = m.Doc
		}
	}
	return all
}
