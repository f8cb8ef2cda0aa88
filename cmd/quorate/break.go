package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"
)

func (c *console) breakCommand() *cli.Command {
	return &cli.Command{
		Name:        "break",
		Usage:       "free a name whoever holds it",
		ArgsUsage:   "NAME",
		Description: "Deletes the locks of a name on all nodes. The holder learns of it when it extends its lease, or at the latest when its validity ends: until then two may act on the name, and only a gate at the resource keeps them apart. It asks first, for which it needs a terminal; --yes answers. Where nobody holds the name, it does nothing and ends with code 0.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"},
		},
		Action: c.breakName,
	}
}

func (c *console) breakName(ctx context.Context, cmd *cli.Command) error {
	asJSON, err := isJSON(cmd)
	if err != nil {
		return err
	}
	name, err := oneArgument(cmd, "NAME")
	if err != nil {
		return err
	}
	if !cmd.Bool("yes") && !c.interactive() {
		return usagef("break: nobody can be asked, because this is no terminal; --yes breaks %q without a question", name)
	}
	f, err := c.openForLooking(cmd)
	if err != nil {
		return err
	}
	defer f.close()
	before, err := f.locker.Inspect(ctx, name)
	if err != nil {
		return err
	}
	seen := viewOf(before)
	if seen.holderOrClaimant() == "" {
		return c.broken(asJSON, breakage{Name: name}, fmt.Sprintf("nobody holds %s: there is nothing to break", printable(name)))
	}
	if !cmd.Bool("yes") {
		if err := c.confirmBreak(ctx, &seen); err != nil {
			return err
		}
	}
	was, err := f.locker.Break(ctx, name)
	if err != nil {
		return err
	}
	v := viewOf(was)
	told := fmt.Sprintf("broken: %s was held by %s, token %d", printable(name), printable(v.holderOrClaimant()), v.Token)
	if v.holderOrClaimant() == "" {
		told = fmt.Sprintf("%s was given back just before it would have been broken", printable(name))
	} else if v.holderOrClaimant() != seen.holderOrClaimant() {
		told += ", who has taken the place of " + printable(seen.holderOrClaimant())
	}
	return c.broken(asJSON, breakage{Name: name, Broken: v.holderOrClaimant() != "", Was: &v}, told)
}

// A breakage is what break has done.
type breakage struct {
	Name   string    `json:"name"`
	Broken bool      `json:"broken"`
	Was    *nameView `json:"was,omitempty"`
}

func (c *console) broken(asJSON bool, b breakage, told string) error {
	if asJSON {
		return printJSON(c.out, b)
	}
	_, err := fmt.Fprintln(c.out, told)
	return err
}

// confirmBreak has a person type the name.
func (c *console) confirmBreak(ctx context.Context, seen *nameView) error {
	_, _ = fmt.Fprintf(c.err, `%s is held by %s
token %d, age %s, TTL %s, votes %s
To break it frees the name at once. The holder goes on until it extends its lease, or until its
validity ends: meanwhile two may act, and only a gate at the resource keeps them apart.
`, printable(seen.Name), printable(seen.holderOrClaimant()), seen.Token, seen.age(), brief(seen.ttl()), seen.votes())
	answer, err := c.ask(ctx, "Type the name to break it: ")
	if err != nil {
		return err
	}
	// A name with odd characters may be typed as it is shown.
	if answer != seen.Name && answer != printable(seen.Name) {
		return errors.New("not broken: that was not the name")
	}
	return nil
}

// ask puts a question, and returns the line that answers it.
func (c *console) ask(ctx context.Context, question string) (string, error) {
	_, _ = fmt.Fprint(c.err, question)
	type line struct {
		text string
		err  error
	}
	answered := make(chan line, 1)
	go func() { // a read cannot be given up; the process ends with it
		text, err := bufio.NewReader(c.in).ReadString('\n')
		answered <- line{text, err}
	}()
	select {
	case l := <-answered:
		if l.text == "" && l.err != nil {
			return "", fmt.Errorf("nothing was answered: %w", l.err)
		}
		return strings.TrimRight(l.text, "\r\n"), nil
	case <-ctx.Done():
		_, _ = fmt.Fprintln(c.err)
		return "", context.Cause(ctx)
	}
}
