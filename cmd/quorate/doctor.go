package main

import (
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/quorate/quorate/redlock"
)

func (c *console) doctorCommand() *cli.Command {
	return &cli.Command{
		Name:  "doctor",
		Usage: "look for what is wrong with the fleet",
		Description: "Asks each node who it is and how it is set up, tries out the rights of its user, compares clocks, and takes a lease of its own (quorate-doctor/ and random letters), of which nothing is left but a fence that expires. " +
			"Each line is a check: ok, warn or ERROR, what was found, and what to do. Ends with 0 where there is no ERROR, else with 1.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "strict", Usage: "end with 1 also where there are warnings"},
			&cli.DurationFlag{Name: "timeout", Value: 2 * time.Second, Usage: "how long a node may take for one answer, at least 10ms, at most 1m"},
		},
		Action: c.doctor,
	}
}

// A verdict is how bad a finding is.
type verdict string

const (
	good    verdict = "ok"
	warning verdict = "warn"
	bad     verdict = "ERROR"
)

// fleetWide is the node of findings about all of them.
const fleetWide = "fleet"

// A finding is the outcome of one check.
type finding struct {
	Verdict verdict `json:"verdict"`
	Node    string  `json:"node"` // "fleet" where it is about all
	Check   string  `json:"check"`
	Found   string  `json:"found"`
	Advice  string  `json:"advice,omitempty"`
}

// A diagnosis is all findings.
type diagnosis struct {
	Verdict  verdict   `json:"verdict"` // the worst
	Errors   int       `json:"errors"`
	Warnings int       `json:"warnings"`
	Findings []finding `json:"findings"`
}

func (d *diagnosis) add(findings ...finding) {
	for _, f := range findings {
		switch f.Verdict {
		case bad:
			d.Errors++
		case warning:
			d.Warnings++
		}
		d.Findings = append(d.Findings, f)
	}
	switch {
	case d.Errors > 0:
		d.Verdict = bad
	case d.Warnings > 0:
		d.Verdict = warning
	default:
		d.Verdict = good
	}
}

func (d *diagnosis) summary() string {
	switch d.Verdict {
	case bad:
		return fmt.Sprintf("the fleet has %s and %s", count(d.Errors, "error"), count(d.Warnings, "warning"))
	case warning:
		return fmt.Sprintf("the fleet can be used, with %s", count(d.Warnings, "warning"))
	}
	return "the fleet is as it should be"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (c *console) doctor(ctx context.Context, cmd *cli.Command) error {
	asJSON, err := isJSON(cmd)
	if err != nil {
		return err
	}
	if err := noArguments(cmd); err != nil {
		return err
	}
	timeout := cmd.Duration("timeout")
	if timeout < 10*time.Millisecond || timeout > time.Minute {
		return usagef("--timeout %s: between 10ms and 1m", timeout)
	}
	// The fences of test leases need not outlive them for long.
	f, err := c.openForLooking(cmd, redlock.WithFenceTTL(2*cmd.Duration("max-ttl")))
	if err != nil {
		return err
	}
	defer f.close()
	d := examination{
		fleet: f, timeout: timeout, prefix: cmd.String("prefix"), ttl: min(redlock.DefaultTTL, cmd.Duration("max-ttl")),
		maxTTL: cmd.Duration("max-ttl"), trustsDisks: cmd.Bool("trust-persistence"), name: "quorate-doctor/" + randomText(),
	}
	result := d.run(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	if asJSON {
		err = printJSON(c.out, result)
	} else {
		err = c.printDiagnosis(result)
	}
	switch {
	case err != nil:
		return err
	case result.Errors > 0, cmd.Bool("strict") && result.Warnings > 0:
		return status(exitFailed)
	}
	return nil
}

func (c *console) printDiagnosis(d *diagnosis) error {
	rows := newTable("VERDICT", "NODE", "CHECK", "FOUND")
	for _, f := range d.Findings {
		found := f.Found
		if f.Advice != "" {
			found += "; " + f.Advice
		}
		rows.add(string(f.Verdict), f.Node, f.Check, found)
	}
	if err := rows.print(c.out); err != nil {
		return err
	}
	_, err := fmt.Fprintf(c.out, "\n%s\n", d.summary())
	return err
}
