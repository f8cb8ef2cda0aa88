package docs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEachBlockThatNamesARegionIsThatRegionAndNoRegionIsWithoutABlock(t *testing.T) {
	regions, err := Regions("recipes")
	require.NoError(t, err)
	require.NotEmpty(t, regions)
	pages, err := Pages(Root)
	require.NoError(t, err)
	shown := map[string]bool{}
	for _, page := range pages {
		blocks, err := Blocks(Root, page)
		require.NoError(t, err)
		for _, b := range blocks {
			if b.Region != "" {
				shown[b.Region] = true
				require.Contains(t, regions, b.Region, b.At())
				require.Equal(t, regions[b.Region], b.Text, "%s: run (cd test/docs && go run ./sync)", b.At())
			}
		}
	}
	for region := range regions {
		require.True(t, shown[region], "no page shows the region %s", region)
	}
}

func TestSyncWritesTheRegionAndLeavesTheRestOfThePageAlone(t *testing.T) {
	root := t.TempDir()
	page := filepath.Join(root, "a.md")
	const before = "# A\n\n```go\nkept()\n```\n\n<!-- region: one -->\n\n```go\nold()\nolder()\n```\n\n<!-- region: two -->\n```go\n```\nend\n"
	require.NoError(t, os.WriteFile(page, []byte(before), 0o644))
	regions := map[string]string{"one": "new()\n", "two": "a()\nb()\n"}

	changed, err := Sync(root, regions)
	require.NoError(t, err)
	require.Equal(t, []string{"a.md"}, changed)
	after, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, "# A\n\n```go\nkept()\n```\n\n<!-- region: one -->\n\n```go\nnew()\n```\n\n<!-- region: two -->\n```go\na()\nb()\n```\nend\n", string(after))

	changed, err = Sync(root, regions)
	require.NoError(t, err)
	require.Empty(t, changed, "a second time changes nothing")

	_, err = Sync(root, map[string]string{"one": "new()\n"})
	require.ErrorContains(t, err, "there is no region two")
}

func TestABlockThatWouldBeOverlookedIsAnError(t *testing.T) {
	for name, text := range map[string]string{
		"indented":  "- x\n  ```go\n  x\n  ```\n",
		"never end": "```go\nx\n",
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(root, "a.md"), []byte(text), 0o644))
			_, err := Blocks(root, "a.md")
			require.Error(t, err)
		})
	}
}

func TestRegionsThatDoNotMatchUpAreAnError(t *testing.T) {
	for name, text := range map[string]string{
		"in one another": "// region a\n// region b\n// endregion\n",
		"no end":         "// region a\nx\n",
		"no begin":       "// endregion\n",
		"twice":          "// region a\nx\n// endregion\n// region a\ny\n// endregion\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "a.go"), []byte(text), 0o644))
			_, err := Regions(dir)
			require.Error(t, err)
		})
	}
}

func TestTheIndexHasAllPages(t *testing.T) {
	index, err := os.ReadFile(filepath.Join(Root, "docs/README.md"))
	require.NoError(t, err)
	pages, err := filepath.Glob(filepath.Join(Root, "docs/*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range pages {
		if name := filepath.Base(page); name != "README.md" {
			require.Contains(t, string(index), "]("+name+")")
		}
	}
}

// languages are those in which a block is checked, or has nothing to check.
var languages = map[string]string{
	"go":   "compiled",
	"sh":   "commands that exist, and know their flags",
	"sql":  "shown, not run: the statements that are run are those of the gates, in test/gates",
	"yaml": "shown, not run",
	"":     "output, settings and formulas",
}

func TestNoBlockIsInALanguageThatNobodyChecks(t *testing.T) {
	pages, err := Pages(Root)
	require.NoError(t, err)
	for _, page := range pages {
		blocks, err := Blocks(Root, page)
		require.NoError(t, err)
		for _, b := range blocks {
			require.Contains(t, languages, b.Language, "%s: write go or sh, or add the language with what is done about it", b.At())
		}
	}
}
