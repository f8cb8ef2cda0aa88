package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Regions are the parts of the Go files in a directory that stand between "// region NAME" and
// "// endregion", without the indentation that their lines have in common.
func Regions(dir string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	regions := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name, lines := "", []string(nil)
		for i, line := range strings.Split(string(content), "\n") {
			begun, begins := strings.CutPrefix(strings.TrimSpace(line), "// region ")
			switch ends := strings.TrimSpace(line) == "// endregion"; {
			case begins && name != "", ends && name == "":
				return nil, fmt.Errorf("%s:%d: regions do not match up", file, i+1)
			case begins && regions[begun] != "":
				return nil, fmt.Errorf("%s:%d: there are two regions %s", file, i+1, begun)
			case begins:
				name = begun
			case ends:
				regions[name] = dedent(lines)
				name, lines = "", nil
			case name != "":
				lines = append(lines, line)
			}
		}
		if name != "" {
			return nil, fmt.Errorf("%s: the region %s never ends", file, name)
		}
	}
	return regions, nil
}

func dedent(lines []string) string {
	for len(lines) > 0 && lines[0] == "" {
		lines = lines[1:]
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if len(lines) == 0 {
		return ""
	}
	indent := lines[0][:len(lines[0])-len(strings.TrimLeft(lines[0], "\t"))]
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(strings.TrimPrefix(line, indent) + "\n")
	}
	return b.String()
}

// Sync writes the regions into the blocks that name them, and tells which pages it has changed.
func Sync(root string, regions map[string]string) (changed []string, err error) {
	pages, err := Pages(root)
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		blocks, err := Blocks(root, page)
		if err != nil {
			return nil, err
		}
		file := filepath.Join(root, page)
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		lines := strings.SplitAfter(string(content), "\n")
		for i := len(blocks) - 1; i >= 0; i-- { // from the end, so that line numbers stay right
			b := blocks[i]
			if b.Region == "" {
				continue
			}
			text, ok := regions[b.Region]
			if !ok {
				return nil, fmt.Errorf("%s: there is no region %s", b.At(), b.Region)
			}
			from, to := b.Line-1, b.Line-1+strings.Count(b.Text, "\n")
			lines = append(lines[:from:from], append([]string{text}, lines[to:]...)...)
		}
		if now := strings.Join(lines, ""); now != string(content) {
			if err := os.WriteFile(file, []byte(now), 0o644); err != nil {
				return nil, err
			}
			changed = append(changed, page)
		}
	}
	return changed, nil
}
