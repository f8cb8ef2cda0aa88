package docs

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// A checker type-checks pieces of Go. Of what they import it reads what the compiler has left, as the
// compiler itself does.
type checker struct {
	preamble string
	imports  types.Importer
	files    *token.FileSet
}

// newChecker has everything ready that the preamble imports, as the module in dir finds it.
func newChecker(dir, preamble string) (*checker, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "preamble", preamble, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	args := []string{"-C", dir, "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}
	for _, spec := range file.Imports {
		args = append(args, strings.Trim(spec.Path.Value, `"`))
	}
	var stderr bytes.Buffer
	list := exec.Command("go", args...)
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr.Bytes())
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, export, _ := strings.Cut(strings.TrimSpace(line), "\t")
		exports[path] = export
	}
	lookup := func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("%s is not imported by the preamble", path)
		}
		return os.Open(exports[path])
	}
	return &checker{preamble, importer.ForCompiler(files, "gc", lookup), files}, nil
}

var (
	declarations = regexp.MustCompile(`(?m)^(func \(?\w|type \w|import )`)
	// … stands for what is left out: a statement, or the last of some arguments.
	leftOut = regexp.MustCompile(`(?m)^\s*…$|,? *…`)
)

// check compiles a piece of code: a whole file, declarations, or statements, which may use what the
// preamble declares, and may leave what they declare unused.
func (c *checker) check(page string, line int, text string) error {
	text = leftOut.ReplaceAllString(text, "")
	here := fmt.Sprintf("//line %s:%d\n", page, line)
	var source string
	switch {
	case strings.HasPrefix(text, "package ") || strings.Contains(text, "\npackage "):
		source = here + text
	case declarations.MatchString(text):
		source = c.preamble + "\n" + here + text
	default:
		// Pages call any of the gates so.
		var errs []error
		for _, gate := range []string{"*fencing.RedisGate", "*fencing.SQLGate"} {
			source = c.preamble + "\nfunc _(" + parameters + "gate " + gate + ") error {\n{\n" + here + text + "\n}\nreturn nil\n}\n"
			err := c.compile(source)
			if err == nil {
				return nil
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}
	return c.compile(source)
}

func (c *checker) compile(source string) error {
	file, err := parser.ParseFile(c.files, "snippet", source, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	var errs []error
	config := types.Config{Importer: c.imports, Error: func(err error) {
		// Soft errors are what is declared and not used.
		// So may the end of a function be left out.
		if typed := (types.Error{}); !errors.As(err, &typed) || !typed.Soft && typed.Msg != "missing return" {
			errs = append(errs, err)
		}
	}}
	_, _ = config.Check("snippet", c.files, []*ast.File{file}, nil)
	return errors.Join(errs...)
}
