package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	testName = regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)`")
	testDecl = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w+)\(`)
)

func TestEachTestThatAPageNamesExists(t *testing.T) {
	exists := map[string]bool{}
	require.NoError(t, filepath.WalkDir(Root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		content, err := os.ReadFile(name)
		for _, m := range testDecl.FindAllStringSubmatch(string(content), -1) {
			exists[m[1]] = true
		}
		return err
	}))
	pages, err := Pages(Root)
	require.NoError(t, err)
	found := 0
	for _, page := range pages {
		for i, line := range pageLines(t, page) {
			for _, m := range testName.FindAllStringSubmatch(line, -1) {
				found++
				assert.True(t, exists[m[1]], "%s:%d: there is no test %s", page, i+1, m[1])
			}
		}
	}
	require.Greater(t, found, 100, "the names were not found")
}
