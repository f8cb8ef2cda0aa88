package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const troubles = "docs/troubleshooting.md"

func TestEachExportedErrorIsOnThePageOfTroublesByItsNameAndItsText(t *testing.T) {
	lines := pageLines(t, troubles)
	found := 0
	for _, dir := range packages {
		p := parse(t, dir)
		for name, text := range sentinels(t, dir) {
			found++
			full := p.Name + "." + name
			if p.Name == "fencing" && name == "ErrStaleToken" {
				text = "stale token" // it is redlock's
			}
			require.NotEmpty(t, text, full)
			assert.True(t, anyLine(lines, "`"+text+"`", "`"+full+"`"), "no line of %s has both `%s` and `%s`", troubles, text, full)
		}
	}
	require.Greater(t, found, 50, "the errors were not found")
}

func TestEachLineThatIsLoggedIsOnThePageOfTroubles(t *testing.T) {
	lines := pageLines(t, troubles)
	found := 0
	for _, dir := range packages {
		for message := range logged(t, dir) {
			found++
			head, _, _ := strings.Cut(message, ";")
			head = strings.TrimSpace(head)
			assert.True(t, anyLine(lines, "`"+head), "no line of %s has `%s`", troubles, head)
		}
	}
	require.Greater(t, found, 25, "the messages were not found")
}

func pageLines(t *testing.T, page string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(Root, page))
	require.NoError(t, err)
	return strings.Split(string(content), "\n")
}

func anyLine(lines []string, parts ...string) bool {
	for _, line := range lines {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(line, part)
		}
		if all {
			return true
		}
	}
	return false
}

// sentinels are the exported variables Err… of a package, with their texts.
func sentinels(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	eachFile(t, dir, func(file *ast.File) {
		for _, decl := range file.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.VAR {
				continue
			}
			for _, spec := range gen.Specs {
				value := spec.(*ast.ValueSpec)
				for i, name := range value.Names {
					if strings.HasPrefix(name.Name, "Err") && i < len(value.Values) {
						found[name.Name] = firstString(value.Values[i])
					}
				}
			}
		}
	})
	return found
}

// logged are the strings that begin with the package's name and a colon, but for those of errors: what
// the log says.
func logged(t *testing.T, dir string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	eachFile(t, dir, func(file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && makesError(call) {
				return false
			}
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			require.NoError(t, err)
			if rest, ok := strings.CutPrefix(text, file.Name.Name+": "); ok && rest != "" {
				found[text] = true
			}
			return true
		})
	})
	return found
}

// A panic is no line of the log, and nobody's trouble but ours.
func makesError(call *ast.CallExpr) bool {
	if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "panic" {
		return true
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	p, ok := sel.X.(*ast.Ident)
	return ok && (p.Name == "fmt" || p.Name == "errors" || p.Name == "strings")
}

func firstString(e ast.Expr) (text string) {
	ast.Inspect(e, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && text == "" {
			text, _ = strconv.Unquote(lit.Value)
		}
		return true
	})
	return text
}

// eachFile hands out the files of a package that are no tests.
func eachFile(t *testing.T, dir string, do func(*ast.File)) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(Root, dir, "*.go"))
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		do(file)
	}
}
