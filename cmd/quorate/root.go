package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v3"

	"github.com/quorate/quorate/redlock"
)

// runsPrograms is the title of the commands that have exit codes of programs.
const runsPrograms = "Programs under a lease"

// root is the whole command.
func (c *console) root() *cli.Command {
	root := &cli.Command{
		Name:      "quorate",
		Usage:     "coordinate over independent Redis masters: locks, leaders, jobs",
		UsageText: "quorate COMMAND [FLAG...] [ARGUMENT...]",
		Version:   version(),
		Description: `Runs programs under leases that a majority of the nodes has granted, shows what the nodes know, and finds what is wrong with them. The nodes are 1, 3 or 5 independent Redis masters; flags may stand before the command or behind it.

    export QUORATE_NODES=redis://10.0.0.1:6379,redis://10.0.0.2:6379,redis://10.0.0.3:6379
    quorate doctor
    quorate run nightly-backup -- pg_dump -f /backup/db.dump
    quorate lead billing -- ./billing --port 8080
    quorate cron report "0 2 * * *" --timezone Europe/Berlin -- ./report

A lease does not stop a program that was paused from acting late: give the token that is in its environment to the resource, and have that refuse a lower one than it has seen.`,
		Flags:                           fleetFlags(),
		EnableShellCompletion:           true,
		ConfigureShellCompletionCommand: configureCompletion,
		HideHelpCommand:                 true, // it has its own, and a name may be "help"
		Reader:                          c.in,
		Writer:                          c.out,
		ErrWriter:                       c.err,
		ExitErrHandler:                  func(context.Context, *cli.Command, error) {}, // run tells
		Before: func(ctx context.Context, _ *cli.Command) (context.Context, error) {
			c.began = true
			return ctx, nil
		},
		Action: noCommand,
	}
	for _, group := range []struct {
		title    string
		commands []*cli.Command
	}{
		{runsPrograms, []*cli.Command{c.runCommand(), c.leadCommand(), c.cronCommand()}},
		{"What goes on", []*cli.Command{c.lsCommand(), c.showCommand(), c.watchCommand(), c.leadersCommand(), c.jobsCommand(), c.dashboardCommand()}},
		{"What is wrong", []*cli.Command{c.doctorCommand(), c.breakCommand(), c.benchCommand()}},
		{"Learning", []*cli.Command{c.demoCommand(), c.helpCommand(), c.manCommand()}},
	} {
		for _, command := range group.commands {
			command.Category = group.title
			root.Commands = append(root.Commands, command)
		}
	}
	_ = root.Walk(func(command *cli.Command) error {
		command.OnUsageError = badUsage
		return nil
	})
	return root
}

// noCommand is called when no command was given, or one that does not exist.
func noCommand(_ context.Context, root *cli.Command) error {
	name := root.Args().First()
	if name == "" {
		printHelp(root.ErrWriter, root)
		return status(exitUsage)
	}
	return noSuchCommand(root, name)
}

func noSuchCommand(root *cli.Command, name string) error {
	return usagef("there is no command %q%s; quorate --help lists them", name, suggested(cli.SuggestCommand(root.VisibleCommands(), name), name))
}

// badUsage words what the parser found.
func badUsage(_ context.Context, command *cli.Command, err error, _ bool) error {
	text := err.Error()
	if flag, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		flags := slices.Concat(command.VisibleFlags(), command.VisiblePersistentFlags())
		text = fmt.Sprintf("there is no flag --%s%s", flag, suggested(cli.SuggestFlag(flags, flag, false), "--"+flag))
	}
	return usagef("%s; %s --help tells more", text, command.FullName())
}

// suggested offers what is near, which the first letter decides: the parser finds something near to anything.
func suggested(suggestion, given string) string {
	s, g := strings.TrimLeft(suggestion, "-"), strings.TrimLeft(given, "-")
	if s == "" || g == "" || s == g || s[0] != g[0] {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", suggestion)
}

// run carries out a command line, and returns the exit code.
func (c *console) run(ctx context.Context, args []string) int {
	c.args, c.began = args, false
	return c.report(ctx, c.root().Run(ctx, args))
}

// report tells of the error, and gives the exit code.
func (c *console) report(ctx context.Context, err error) int {
	var parsers cli.ExitCoder
	switch {
	case err == nil:
	case !c.began, errors.As(err, &parsers) && !errors.Is(err, syscall.EPIPE):
		err = &usageError{err}
	case errors.Is(err, context.Canceled) && context.Cause(ctx) != nil:
		err = context.Cause(ctx)
	}
	code := exitCode(err)
	var told status
	var signal signalled
	switch {
	case err == nil, errors.As(err, &told), errors.As(err, &signal), code == exitPipe, code == exitInterrupted:
	default:
		c.say("%s", inWords(err))
	}
	return code
}

// say writes a line to stderr.
func (c *console) say(format string, args ...any) {
	_, _ = fmt.Fprintf(c.err, "quorate: %s\n", oneLine(fmt.Sprintf(format, args...)))
}

// oneLine is a text, of whomever, on one line.
func oneLine(text string) string {
	return printable(strings.ReplaceAll(strings.TrimSpace(text), "\n", "; "))
}

// inWords is an error for somebody who does not know the packages.
func inWords(err error) string {
	var gaveUp *redlock.AcquireError
	if errors.As(err, &gaveUp) && errors.Is(err, redlock.ErrSameServer) {
		err = gaveUp.Err // which is all: nothing was waited for
	}
	text := err.Error()
	for _, name := range []string{"redlock: ", "leader: ", "scheduler: "} {
		text = strings.TrimPrefix(text, name)
		text = strings.ReplaceAll(text, ": "+name, ": ")
	}
	if errors.Is(err, redlock.ErrTTLTooLong) {
		text += " (--max-ttl)"
	}
	return text
}

func configureCompletion(command *cli.Command) {
	_ = command.Walk(func(command *cli.Command) error {
		command.OnUsageError = badUsage
		return nil
	})
	command.Hidden = false
	command.Category = "Learning"
	command.Usage = "print the completion script of a shell: bash, zsh, fish or pwsh"
}

// version is that of the module, or of the checkout that it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "unknown"
	}
	return info.Main.Version
}
