package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v3"
)

// helpWidth is what the width of a terminal is taken to be.
const helpWidth = 90

func init() {
	cli.HelpPrinter = func(w io.Writer, _ string, data any) {
		if command, ok := data.(*cli.Command); ok {
			printHelp(w, command)
		}
	}
}

func (c *console) helpCommand() *cli.Command {
	return &cli.Command{
		Name:        "help",
		Usage:       "tell of a command",
		UsageText:   "quorate help [COMMAND]",
		Description: "Prints what --help prints.",
		Action: func(_ context.Context, cmd *cli.Command) error {
			told := cmd.Root()
			if name := cmd.Args().First(); name != "" {
				if told = told.Command(name); told == nil {
					return noSuchCommand(cmd.Root(), name)
				}
			}
			printHelp(c.out, told)
			return nil
		},
	}
}

// printHelp prints what the command tells of itself.
func printHelp(w io.Writer, command *cli.Command) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s - %s\n\n", command.FullName(), command.Usage)
	fmt.Fprintf(&b, "Usage: %s\n", usageOf(command))
	for _, p := range paragraphs(command.Description) {
		b.WriteString("\n" + p.wrapped(0) + "\n")
	}
	isRoot := command.Root() == command
	for _, title := range categories(command) {
		fmt.Fprintf(&b, "\n%s:\n", orElse(title, "Commands"))
		for _, sub := range command.VisibleCommands() {
			if sub.Category == title {
				writeItem(&b, 14, sub.Name, sub.Usage)
			}
		}
	}
	b.WriteString("\nFlags:\n")
	for _, flag := range command.VisibleFlags() {
		names, text := describe(flag)
		writeItem(&b, 24, names, text)
	}
	if shared := command.VisiblePersistentFlags(); !isRoot && len(shared) > 0 {
		var names []string
		for _, flag := range shared {
			names = append(names, "--"+flag.Names()[0])
		}
		b.WriteString("\n" + wrap("Also, as for all commands ("+command.Root().Name+" --help tells of them): "+strings.Join(names, ", "), 0) + "\n")
	}
	if isRoot || command.Category == runsPrograms {
		b.WriteString("\nExit codes:\n")
		for _, e := range exitCodes {
			writeItem(&b, 14, e.code, e.meaning)
		}
	}
	_, _ = io.WriteString(w, b.String())
}

// categories are those of the commands, in the order of root.
func categories(command *cli.Command) []string {
	var titles []string
	for _, sub := range command.VisibleCommands() {
		if !slices.Contains(titles, sub.Category) {
			titles = append(titles, sub.Category)
		}
	}
	return titles
}

func usageOf(command *cli.Command) string {
	switch {
	case command.UsageText != "":
		return command.UsageText
	case command.ArgsUsage != "":
		return command.FullName() + " [FLAG...] " + command.ArgsUsage
	}
	return command.FullName() + " [FLAG...]"
}

// describe gives a flag's names, with what stands for its value, and what it does.
func describe(flag cli.Flag) (names, text string) {
	doc, ok := flag.(cli.DocGenerationFlag)
	if !ok {
		return "--" + flag.Names()[0], ""
	}
	text = doc.GetUsage()
	value := ""
	if doc.TakesValue() {
		value = strings.ToUpper(doc.TypeName())
		if _, rest, found := strings.Cut(text, "`"); found {
			value, _, _ = strings.Cut(rest, "`")
		}
		value = " " + orElse(value, "VALUE")
	}
	text = strings.ReplaceAll(text, "`", "")
	var all []string
	for _, name := range flag.Names() {
		if utf8.RuneCountInString(name) == 1 {
			all = append(all, "-"+name)
		} else {
			all = append(all, "--"+name)
		}
	}
	if doc.IsDefaultVisible() && doc.TakesValue() {
		if given := defaultOf(doc); given != "" {
			text += fmt.Sprintf(" (default %s)", given)
		}
	}
	if env := doc.GetEnvVars(); len(env) > 0 {
		text += " [$" + strings.Join(env, ", $") + "]"
	}
	return strings.Join(all, ", ") + value, text
}

// defaultOf is a default worth telling, or "".
func defaultOf(doc cli.DocGenerationFlag) string {
	text := strings.Trim(orElse(doc.GetDefaultText(), doc.GetValue()), `"`)
	switch text {
	case "0", "0s", "[]":
		return ""
	}
	if short, ok := strings.CutSuffix(text, "m0s"); ok { // 24h0m0s is 24h
		text, _ = strings.CutSuffix(short+"m", "h0m")
		if text != short+"m" {
			text += "h"
		}
	}
	return text
}

// writeItem writes a term and what is to be said of it beside it, or below where the term is too long.
func writeItem(b *strings.Builder, column int, term, text string) {
	line := "  " + term
	if utf8.RuneCountInString(line)+2 > column {
		line += "\n" + strings.Repeat(" ", column)
	} else {
		line += strings.Repeat(" ", column-utf8.RuneCountInString(line))
	}
	b.WriteString(line + wrap(text, column) + "\n")
}

// A paragraph of a description: words, or lines that are left as they are because they are indented.
type paragraph struct {
	text     string
	verbatim bool
}

func paragraphs(description string) []paragraph {
	var all []paragraph
	for text := range strings.SplitSeq(description, "\n\n") {
		if strings.TrimSpace(text) != "" {
			all = append(all, paragraph{text, strings.HasPrefix(text, "  ")})
		}
	}
	return all
}

func (p paragraph) wrapped(indent int) string {
	if p.verbatim {
		return p.text
	}
	return wrap(p.text, indent)
}

// wrap breaks a text into lines, the first of which begins at the indent already.
func wrap(text string, indent int) string {
	var b strings.Builder
	used := indent
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case used+1+n > helpWidth:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			used = indent
		default:
			b.WriteString(" ")
			used++
		}
		b.WriteString(word)
		used += n
	}
	return b.String()
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
