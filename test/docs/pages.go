package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Root is where the tree begins, seen from this package.
const Root = "../.."

// A Block is a fenced block of code in a page.
type Block struct {
	Page     string // relative to the tree, with slashes
	Line     int    // of its first line of code
	Language string
	Region   string // the region that it has to be equal to, where a comment before it names one
	Text     string
}

// At is where the block is, for messages.
func (b Block) At() string { return fmt.Sprintf("%s:%d", b.Page, b.Line) }

// Pages are the Markdown files of the tree, relative to it.
func Pages(root string) ([]string, error) {
	var pages []string
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == ".cache" || entry.Name() == "node_modules"):
			return fs.SkipDir
		case !entry.IsDir() && filepath.Ext(name) == ".md":
			rel, err := filepath.Rel(root, name)
			if err != nil {
				return err
			}
			pages = append(pages, filepath.ToSlash(rel))
		}
		return nil
	})
	return pages, err
}

var regionComment = regexp.MustCompile(`^<!-- region: ([a-z-]+) -->$`)

// Blocks are the fenced blocks of a page.
func Blocks(root, page string) ([]Block, error) {
	content, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		return nil, err
	}
	var blocks []Block
	var open *Block
	region := ""
	for i, line := range strings.Split(string(content), "\n") {
		switch {
		case open != nil && line == "```":
			blocks, open = append(blocks, *open), nil
		case open != nil:
			open.Text += line + "\n"
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			if !strings.HasPrefix(line, "```") {
				return nil, fmt.Errorf("%s:%d: a fenced block begins at the margin, or it is not found", page, i+1)
			}
			open = &Block{Page: page, Line: i + 2, Language: strings.TrimPrefix(line, "```"), Region: region}
			region = ""
		case line != "":
			region = ""
			if m := regionComment.FindStringSubmatch(line); m != nil {
				region = m[1]
			}
		}
	}
	if open != nil {
		return nil, fmt.Errorf("%s: the block never ends", open.At())
	}
	return blocks, nil
}

// AllBlocks are those of all pages in one language.
func AllBlocks(root, language string) ([]Block, error) {
	pages, err := Pages(root)
	if err != nil {
		return nil, err
	}
	var all []Block
	for _, page := range pages {
		blocks, err := Blocks(root, page)
		if err != nil {
			return nil, err
		}
		for _, b := range blocks {
			if b.Language == language {
				all = append(all, b)
			}
		}
	}
	return all, nil
}
