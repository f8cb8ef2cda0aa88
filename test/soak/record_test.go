package main

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

// The track record names the test that keeps each defect out. A test that was renamed, or
// deleted, would leave an empty promise.
func TestEveryTestThatTheTrackRecordNamesExists(t *testing.T) {
	root := filepath.Join("..", "..")
	record, err := os.ReadFile(filepath.Join(root, "docs", "track-record.md"))
	require.NoError(t, err)
	named := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`").FindAllStringSubmatch(string(record), -1)
	require.Greater(t, len(named), 20)

	declared := map[string]bool{}
	declaration := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range declaration.FindAllStringSubmatch(string(text), -1) {
			declared[match[1]] = true
		}
		return err
	}))
	for _, match := range named {
		assert.True(t, declared[match[1]], "docs/track-record.md names %s, which no file declares: give the new name", match[1])
	}
}
