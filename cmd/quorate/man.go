package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v3"
)

func (c *console) manCommand() *cli.Command {
	return &cli.Command{
		Name:      "man",
		Usage:     "print the manual page",
		UsageText: "quorate man",
		Description: `Prints the manual page of all commands, for man or groff:

    quorate man >/usr/local/share/man/man1/quorate.1
    quorate man | man -l -`,
		Action: func(_ context.Context, cmd *cli.Command) error {
			if cmd.Args().Present() {
				return usagef("man takes no arguments: the page is about all commands")
			}
			return printMan(c.out, cmd.Root())
		},
	}
}

// printMan prints the manual page, which is what help prints, of all commands.
func printMan(w io.Writer, root *cli.Command) error {
	var m manual
	m.line(`.TH QUORATE 1 "" "quorate %s" "User Commands"`, roff(root.Version))
	m.line(".SH NAME")
	m.line("quorate \\- %s", roff(root.Usage))
	m.line(".SH SYNOPSIS")
	m.line(".B %s", roff(usageOf(root)))
	m.line(".SH DESCRIPTION")
	m.describe(root)
	m.line(".SH COMMANDS")
	for _, command := range root.VisibleCommands() {
		m.line(".SS %s", roff(strings.TrimPrefix(usageOf(command), "quorate ")))
		m.line("%s.", roff(command.Usage))
		m.describe(command)
		for _, sub := range command.VisibleCommands() {
			m.item(sub.Name, sub.Usage)
		}
		m.flags(command)
	}
	m.line(".SH FLAGS OF ALL COMMANDS")
	m.flags(root)
	m.line(".SH EXIT STATUS")
	for _, e := range exitCodes {
		m.item(e.code, e.meaning)
	}
	m.line(".SH ENVIRONMENT")
	m.line("The variables in brackets stand for the flags that they are named with. What programs are given is said with")
	m.line(".BR run ,\n.B lead\nand\n.BR cron .")
	_, err := io.WriteString(w, m.String())
	return err
}

// A manual is a page in roff, by the macros of man(7).
type manual struct{ strings.Builder }

func (m *manual) line(format string, args ...any) {
	_, _ = fmt.Fprintf(m, format+"\n", args...)
}

func (m *manual) describe(command *cli.Command) {
	for _, p := range paragraphs(command.Description) {
		m.line(".PP")
		if !p.verbatim {
			m.line("%s", roff(strings.Join(strings.Fields(p.text), " ")))
			continue
		}
		m.line(".nf")
		for text := range strings.SplitSeq(p.text, "\n") {
			m.line("%s", roff(text))
		}
		m.line(".fi")
	}
}

func (m *manual) flags(command *cli.Command) {
	for _, flag := range command.VisibleFlags() {
		names, text := describe(flag)
		m.item(names, text)
	}
}

func (m *manual) item(term, text string) {
	m.line(".TP\n.B %s\n%s", roff(term), roff(text))
}

// roff is a text without a meaning to roff.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, "…", `\&...`).Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}
