package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
)

func (c *console) leadersCommand() *cli.Command {
	return &cli.Command{
		Name:        "leaders",
		Usage:       "list the elections, and who leads",
		ArgsUsage:   "[PREFIX]",
		Description: "Lists the elections that the nodes know, also those without a leader, whose names begin with PREFIX. A leader that crashed is told until its TTL has ended. An election in which nobody has led for the time that nodes remember (24 h by default) is not known any more. Listing needs the right +scan. JSON is one object a line.",
		Action:      c.leaders,
	}
}

// A leaderView is an election, for programs.
type leaderView struct {
	Election string            `json:"election"`
	Leader   string            `json:"leader"` // "" when nobody leads
	Term     redlock.Token     `json:"term"`
	Since    *time.Time        `json:"since,omitempty"`
	Address  string            `json:"address,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
}

func leaderViewOf(t leader.Term) leaderView {
	v := leaderView{Election: t.Name, Leader: t.Leader, Term: t.Number, Address: t.Address, Labels: t.Labels}
	if !t.Since.IsZero() {
		v.Since = &t.Since
	}
	return v
}

func (c *console) leaders(ctx context.Context, cmd *cli.Command) error {
	asJSON, err := isJSON(cmd)
	if err != nil {
		return err
	}
	prefix, err := optionalArgument(cmd, "PREFIX")
	if err != nil {
		return err
	}
	f, err := c.openForLooking(cmd)
	if err != nil {
		return err
	}
	defer f.close()
	rows := newTable("ELECTION", "LEADER", "TERM", "SINCE", "ADDRESS", "LABELS")
	for known, err := range f.locker.List(ctx, redlock.Filter{Prefix: prefix}) {
		if err != nil {
			if !asJSON {
				err = errors.Join(rows.printFound(c.out), err) // what was found is told all the same
			}
			return listFailed(err)
		}
		term, isElection := leader.TermOf(known)
		if !isElection {
			continue
		}
		v := leaderViewOf(term)
		if asJSON {
			if err := printLine(c.out, v); err != nil {
				return err
			}
			continue
		}
		rows.add(v.cells()...)
	}
	if asJSON {
		return nil
	}
	return rows.print(c.out)
}

func (v *leaderView) cells() []string {
	if v.Leader == "" {
		return []string{v.Election, "-", "-", "-", "-", "-"}
	}
	began := "-"
	if v.Since != nil {
		began = v.Since.Format(time.RFC3339) + " (" + since(*v.Since) + ")"
	}
	var labels []string
	for _, key := range slices.Sorted(maps.Keys(v.Labels)) {
		labels = append(labels, key+"="+v.Labels[key])
	}
	return []string{v.Election, v.Leader, v.Term.String(), began, orDash(v.Address), orDash(strings.Join(labels, ","))}
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
