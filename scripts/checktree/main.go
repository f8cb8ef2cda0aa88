// Checktree looks over the files of the project for what no compiler sees: notes to self that
// were left in, and links in the documents that lead nowhere.
//
// usage: go run ./scripts/checktree [directory]
package main

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	found, err := check(os.DirFS(root))
	if err != nil {
		fmt.Fprintln(os.Stderr, "checktree:", err)
		os.Exit(2)
	}
	for _, f := range found {
		fmt.Println(f)
	}
	if len(found) > 0 {
		os.Exit(1)
	}
}

// finding is one thing to be put right.
type finding struct {
	file string
	line int
	what string
}

func (f finding) String() string { return fmt.Sprintf("%s:%d: %s", f.file, f.line, f.what) }

// Put together here, so that this file passes its own check.
var (
	note = regexp.MustCompile(`\b(` + "TO" + "DO|FIX" + "ME|X" + "XX" + `)\b`)
	// The standard library has a function of that name; staticcheck knows about its uses.
	notNote = "context.TO" + "DO"
)

// check reads all files below the root, but for what git and make keep there.
func check(tree fs.FS) ([]finding, error) {
	var found []finding
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name == ".git" || name == ".cache" {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		content, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		text := string(content)
		if strings.Contains(text, "\x00") {
			return nil // not text
		}
		found = append(found, notes(name, text)...)
		if path.Ext(name) == ".md" {
			found = append(found, links(tree, name, text)...)
		}
		return nil
	})
	return found, err
}

func notes(name, text string) []finding {
	var found []finding
	for i, line := range strings.Split(text, "\n") {
		if word := note.FindString(strings.ReplaceAll(line, notNote, "")); word != "" {
			found = append(found, finding{name, i + 1, word + ": do it, or open an issue and delete the note"})
		}
	}
	return found
}

var (
	// [text](target), ![text](target "title"), and the definition [name]: target
	inlineLink  = regexp.MustCompile(`\]\(<?([^()\s<>]+(?:\([^()\s]*\))?)>?(?:\s+"[^"]*")?\)`)
	linkTarget  = regexp.MustCompile(`^\s{0,3}\[[^\]^][^\]]*\]:\s+<?([^\s<>]+)>?`)
	elsewhere   = regexp.MustCompile(`^[a-z][a-z0-9+.-]*:`)
	codeSpan    = regexp.MustCompile("`[^`]*`")
	heading     = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*$`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}\- _]`)
)

func links(tree fs.FS, name, text string) []finding {
	var found []finding
	for number, line := range prose(text) {
		line = codeSpan.ReplaceAllString(line, "")
		targets := inlineLink.FindAllStringSubmatch(line, -1)
		if def := linkTarget.FindStringSubmatch(line); def != nil {
			targets = append(targets, def)
		}
		for _, target := range targets {
			if what := follow(tree, name, text, target[1]); what != "" {
				found = append(found, finding{name, number, what})
			}
		}
	}
	return found
}

// follow says what is wrong with a link, and nothing where it leads somewhere. Of links to the world
// only the form is looked at: a check that asks strangers fails for reasons of theirs.
func follow(tree fs.FS, from, text, link string) string {
	if elsewhere.MatchString(link) {
		return outside(link)
	}
	file, anchor, _ := strings.Cut(link, "#")
	target := from
	if file != "" {
		target = path.Join(path.Dir(from), file)
		if strings.HasPrefix(file, "/") {
			target = path.Clean(file[1:]) // as code hosts read it: from the root
		}
		if !fs.ValidPath(target) {
			return fmt.Sprintf("the link %q leaves the tree", link)
		}
		if _, err := fs.Stat(tree, target); err != nil {
			return fmt.Sprintf("the link %q leads nowhere: there is no %s", link, target)
		}
	}
	if anchor == "" || path.Ext(target) != ".md" {
		return ""
	}
	if target != from {
		content, err := fs.ReadFile(tree, target)
		if err != nil {
			return err.Error()
		}
		text = string(content)
	}
	if !slices.Contains(anchors(text), anchor) {
		return fmt.Sprintf("the link %q leads nowhere: %s has no heading #%s", link, target, anchor)
	}
	return ""
}

// outside says what is wrong with a link to the world.
func outside(link string) string {
	target, err := url.Parse(link)
	switch {
	case err != nil:
		return fmt.Sprintf("the link %q cannot be read: %v", link, err)
	case target.Scheme == "mailto" && strings.Contains(target.Opaque, "@"):
		return ""
	case target.Scheme != "https" && target.Scheme != "http":
		return fmt.Sprintf("the link %q is none for a browser", link)
	case !strings.Contains(target.Hostname(), "."):
		return fmt.Sprintf("the link %q has no host", link)
	}
	return ""
}

// anchors are the names that code hosts make of headings.
func anchors(text string) []string {
	var all []string
	seen := map[string]int{}
	for _, line := range prose(text) {
		h := heading.FindStringSubmatch(line)
		if h == nil {
			continue
		}
		title := inlineLink.ReplaceAllString(h[1], "")
		anchor := strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
		if n := seen[anchor]; n > 0 {
			all = append(all, fmt.Sprintf("%s-%d", anchor, n))
		} else {
			all = append(all, anchor)
		}
		seen[anchor]++
	}
	return all
}

// prose yields the lines outside fenced code, each with its number.
func prose(text string) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		fence := ""
		for i, line := range strings.Split(text, "\n") {
			trimmed := strings.TrimSpace(line)
			switch {
			case fence != "":
				if strings.HasPrefix(trimmed, fence) {
					fence = ""
				}
			case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
				fence = trimmed[:3]
			default:
				if !yield(i+1, line) {
					return
				}
			}
		}
	}
}
