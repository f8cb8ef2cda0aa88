package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/quorate/quorate/redlock"
)

func (c *console) lsCommand() *cli.Command {
	return &cli.Command{
		Name:        "ls",
		Usage:       "list the names that are held, and by whom",
		ArgsUsage:   "[PREFIX]",
		Description: "Lists names that begin with PREFIX, in order. It goes through all keys of all nodes by SCAN, for which their user needs the right +scan. AGE is about that of the lease: its token is the time of the acquisition where clocks agree. VOTES is how many nodes have the holder's lock; a holder in parentheses has too few of them, and holds nothing. JSON is one object a line, each as soon as it is known; a table is printed when all is known.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "also names that nobody holds, and that were used lately"},
			&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Usage: "`NUMBER` of names to list at most; default all"},
		},
		Action: c.ls,
	}
}

func (c *console) ls(ctx context.Context, cmd *cli.Command) error {
	asJSON, err := isJSON(cmd)
	if err != nil {
		return err
	}
	prefix, err := optionalArgument(cmd, "PREFIX")
	if err != nil {
		return err
	}
	limit := cmd.Int("limit")
	if limit < 0 {
		return usagef("--limit %d: a number of names, or 0 for all", limit)
	}
	f, err := c.openForLooking(cmd)
	if err != nil {
		return err
	}
	defer f.close()

	rows := newTable("NAME", "HOLDER", "TOKEN", "AGE", "TTL", "VOTES")
	listed := 0
	for known, err := range f.locker.List(ctx, redlock.Filter{Held: !cmd.Bool("all"), Prefix: prefix}) {
		if err != nil {
			if !asJSON {
				err = errors.Join(rows.printFound(c.out), err) // what was found is told all the same
			}
			return listFailed(err)
		}
		if limit > 0 && listed == limit {
			c.say("there are more than %d; see --limit", limit)
			break
		}
		listed++
		v := viewOf(known)
		if asJSON {
			if err := printLine(c.out, v); err != nil {
				return err
			}
			continue
		}
		rows.add(v.Name, v.holderOrClaimant(), v.Token.String(), v.age(), brief(v.ttl()), v.votes())
	}
	if asJSON {
		return nil
	}
	if listed == 0 && !cmd.Bool("all") {
		c.say("nothing is held; --all lists names that were used lately as well")
	}
	return rows.print(c.out)
}

// listFailed says what to do where a node refuses to tell its keys.
func listFailed(err error) error {
	if text := strings.ToLower(err.Error()); strings.Contains(text, "noperm") && strings.Contains(text, "scan") {
		return fmt.Errorf("%w; the user of the nodes needs the right +scan to list names", err)
	}
	return err
}

// printLine prints a value as one line of JSON.
func printLine(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// oneArgument is the only argument, which there has to be.
func oneArgument(cmd *cli.Command, what string) (string, error) {
	if cmd.NArg() == 0 || cmd.Args().First() == "" {
		return "", usagef("%s: no %s is given", cmd.Name, what)
	}
	return optionalArgument(cmd, what)
}

func optionalArgument(cmd *cli.Command, what string) (string, error) {
	if cmd.NArg() > 1 {
		return "", usagef("%s: one %s at most, and %s are given", cmd.Name, what, strconv.Itoa(cmd.NArg()))
	}
	return cmd.Args().First(), nil
}

// noArguments refuses those of a command that has none.
func noArguments(cmd *cli.Command) error {
	if cmd.NArg() > 0 {
		return usagef("%s: unexpected argument %q", cmd.Name, cmd.Args().First())
	}
	return nil
}

// openForLooking is openFleet with a default TTL that suits any --max-ttl.
func (c *console) openForLooking(cmd *cli.Command, opts ...redlock.Option) (*fleet, error) {
	ttl := min(redlock.DefaultTTL, cmd.Duration("max-ttl"))
	return c.openFleet(cmd, append([]redlock.Option{redlock.WithTTL(ttl)}, opts...)...)
}
