package docs

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// A Command is one command of a page, as its words.
type Command struct {
	At   string
	Dir  string // where the commands before it have gone, relative to the tree
	Args []string
}

func (c Command) String() string { return strings.Join(c.Args, " ") }

var assignment = regexp.MustCompile(`^[A-Z_]+=`)

// Commands are those of a block in sh.
func Commands(b Block) ([]Command, error) {
	var all []Command
	dir := "."
	text := strings.ReplaceAll(b.Text, "\\\n", " ")
	for i, line := range strings.Split(text, "\n") {
		at := fmt.Sprintf("%s:%d", b.Page, b.Line+i)
		args, err := words(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		for len(args) > 0 {
			one := args
			args = nil
			for j, word := range one {
				if word == "&&" {
					one, args = one[:j], one[j+1:]
					break
				}
			}
			for len(one) > 0 && assignment.MatchString(one[0]) {
				one = one[1:] // of the environment of this command
			}
			switch {
			case len(one) == 0:
			case one[0] == "cd" && len(one) == 2:
				dir = path.Join(dir, one[1])
			default:
				all = append(all, Command{At: at, Dir: dir, Args: one})
			}
		}
	}
	return all, nil
}

// words are those of a line, without a comment. Quotes keep a word together; what else a shell knows is
// an error here, so that it does not go unnoticed.
func words(line string) ([]string, error) {
	var all []string
	var word strings.Builder
	quote, inWord := rune(0), false
	end := func() {
		if inWord {
			all = append(all, word.String())
			word.Reset()
			inWord = false
		}
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, inWord = r, true
		case r == ' ' || r == '\t':
			end()
		case r == '#' && !inWord:
			return all, nil
		case strings.ContainsRune("|;<>$`(", r):
			return nil, fmt.Errorf("%q is more of a shell than is read here: %s", r, line)
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote does not end: %s", line)
	}
	end()
	return all, nil
}
