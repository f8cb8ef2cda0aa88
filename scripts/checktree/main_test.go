package main

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhatIsFoundInATree(t *testing.T) {
	t.Parallel()
	later := "TO" + "DO"
	for name, c := range map[string]struct {
		text string
		want []string // empty: nothing to find
	}{
		"a note":                         {"// " + later + ": later", []string{"README.md:1: " + later + ": do it, or open an issue and delete the note"}},
		"context's function":             {"ctx := context." + later + "()", nil},
		"a longer word":                  {"MASTO" + "DON", nil},
		"a link to a file":               {"see [that](docs/that.md)", nil},
		"a link to a directory":          {"see [those](docs/)", nil},
		"a link from the root":           {"see [that](/docs/that.md)", nil},
		"a link to nowhere":              {"\nsee [this](docs/this.md)", []string{`README.md:2: the link "docs/this.md" leads nowhere: there is no docs/this.md`}},
		"a picture that is missing":      {`![p](p.png "a title")`, []string{`README.md:1: the link "p.png" leads nowhere: there is no p.png`}},
		"a definition that is wrong":     {"[x]: x.md", []string{`README.md:1: the link "x.md" leads nowhere: there is no x.md`}},
		"a link out of the tree":         {"[x](../x.md)", []string{`README.md:1: the link "../x.md" leaves the tree`}},
		"a link to the world":            {"[x](https://example.com/x.md), [y](mailto:y@example.com)", nil},
		"a link without a host":          {"[x](https:///x.md)", []string{`README.md:1: the link "https:///x.md" has no host`}},
		"a link that is half written":    {"[x](https//x.md)", []string{`README.md:1: the link "https//x.md" leads nowhere: there is no https/x.md`}},
		"a link that cannot be read":     {"[x](https://x.org:y/)", []string{`README.md:1: the link "https://x.org:y/" cannot be read: parse "https://x.org:y/": invalid port ":y" after host`}},
		"a link for no browser":          {"[x](file:///etc/hosts)", []string{`README.md:1: the link "file:///etc/hosts" is none for a browser`}},
		"a link in code":                 {"`[x](x.md)`\n\n```\n[x](x.md)\n```\n", nil},
		"an anchor here":                 {"# What is, and what isn't: `all`\n[x](#what-is-and-what-isnt-all)", nil},
		"an anchor there":                {"[x](docs/that.md#part-two)", nil},
		"a second heading of one name":   {"# A\n# A\n[x](#a-1)", nil},
		"an anchor that is missing":      {"[x](#gone)", []string{`README.md:1: the link "#gone" leads nowhere: README.md has no heading #gone`}},
		"an anchor that is missing away": {"[x](docs/that.md#gone)", []string{`README.md:1: the link "docs/that.md#gone" leads nowhere: docs/that.md has no heading #gone`}},
		"a heading in code":              {"```\n# gone\n```\n[x](#gone)", []string{`README.md:4: the link "#gone" leads nowhere: README.md has no heading #gone`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := check(fstest.MapFS{
				"README.md":    {Data: []byte(c.text)},
				"docs/that.md": {Data: []byte("# That\n\n## Part two\n")},
				".git/notes":   {Data: []byte(later)},
				"binary":       {Data: []byte("\x00" + later)},
			})
			require.NoError(t, err)
			var got []string
			for _, f := range found {
				got = append(got, f.String())
			}
			assert.Equal(t, c.want, got)
		})
	}
}
