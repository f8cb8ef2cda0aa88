package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/scheduler"
)

func (c *console) jobsCommand() *cli.Command {
	control := func(name, usage, told string, do func(*scheduler.Scheduler, context.Context, string) error) *cli.Command {
		return &cli.Command{
			Name: name, Usage: usage, ArgsUsage: "JOB",
			Action: func(ctx context.Context, cmd *cli.Command) error {
				return c.controlJob(ctx, cmd, told, func(s *scheduler.Scheduler, job string) error { return do(s, ctx, job) })
			},
		}
	}
	return &cli.Command{
		Name:        "jobs",
		Usage:       "list the jobs of the schedulers, and control them",
		Description: "Lists the jobs that the nodes know: those that a replica has looked after within the time that nodes remember (24 h by default). Listing needs the right +scan. JSON is one object a line. A job that nobody knows ends with code 1.",
		Action:      c.jobs,
		Commands: []*cli.Command{
			{
				Name: "history", Usage: "show what became of a job's last ticks, oldest first", ArgsUsage: "JOB",
				Flags:  []cli.Flag{&cli.IntFlag{Name: "number", Aliases: []string{"n"}, Usage: "`NUMBER` of lines at most, the last; default all that are known, some 20"}},
				Action: c.jobHistory,
			},
			control("pause", "have no replica start a tick of a job, until it is resumed", "paused", (*scheduler.Scheduler).Pause),
			control("resume", "end the pause of a job", "resumed", (*scheduler.Scheduler).Resume),
			control("trigger", "run a job once, now, on whichever replica comes first", "triggered", (*scheduler.Scheduler).Trigger),
			{
				Name: "backfill", Usage: "run a job for each tick of a time that is past", ArgsUsage: "JOB",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "from", Usage: "first `TIME`, as 2030-01-31T18:00:00Z"},
					&cli.StringFlag{Name: "to", Usage: "last `TIME`, which is included"},
				},
				Action: c.backfill,
			},
		},
	}
}

// A jobView is a job, for programs.
type jobView struct {
	Job         string     `json:"job"`
	Paused      bool       `json:"paused"`
	PausedSince *time.Time `json:"paused_since,omitempty"`
	PausedBy    string     `json:"paused_by,omitempty"`
	Running     int        `json:"running"`
	Missed      int        `json:"missed"` // ticks, in what is known of the past
	Waiting     int        `json:"waiting"`
	LastRun     *runView   `json:"last_run,omitempty"`
	Error       string     `json:"error,omitempty"`
}

// A runView is a line of a job's ledger, for programs.
type runView struct {
	Kind      scheduler.Kind    `json:"kind"`
	Scheduled time.Time         `json:"scheduled"`
	Ticks     int               `json:"ticks"`
	Outcome   scheduler.Outcome `json:"outcome"`
	Reason    scheduler.Reason  `json:"reason,omitempty"`
	Started   *time.Time        `json:"started,omitempty"`
	Ended     *time.Time        `json:"ended,omitempty"`
	Replica   string            `json:"replica,omitempty"`
	Token     redlock.Token     `json:"token,omitempty"`
	Attempt   int               `json:"attempt,omitempty"`
	Error     string            `json:"error,omitempty"`
}

func runViewOf(r scheduler.Record) runView {
	return runView{
		Kind: r.Kind, Scheduled: r.Scheduled, Ticks: r.Ticks, Outcome: r.Outcome, Reason: r.Reason,
		Started: whenSet(r.Started), Ended: whenSet(r.Ended), Replica: r.Replica, Token: r.Token, Attempt: r.Attempt, Error: r.Err,
	}
}

func whenSet(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func jobViewOf(job string, st scheduler.Status) jobView {
	v := jobView{Job: job, Paused: st.Paused, PausedSince: whenSet(st.PausedSince), PausedBy: st.PausedBy, Waiting: st.Waiting}
	for _, r := range st.History {
		switch r.Outcome {
		case scheduler.Running:
			v.Running++
		case scheduler.Missed:
			v.Missed += r.Ticks
		}
		if !r.Started.IsZero() && (v.LastRun == nil || !r.Started.Before(*v.LastRun.Started)) {
			run := runViewOf(r)
			v.LastRun = &run
		}
	}
	return v
}

func (v *jobView) cells() []string {
	paused, outcome, when, replica := "no", "-", "-", "-"
	if v.Paused {
		paused = "by " + v.PausedBy
		if v.PausedSince != nil {
			paused += " since " + v.PausedSince.Format(time.RFC3339)
		}
	}
	if v.LastRun != nil {
		outcome, when, replica = string(v.LastRun.Outcome), v.LastRun.Started.Format(time.RFC3339), orDash(v.LastRun.Replica)
	}
	if v.Error != "" {
		outcome = "not known: " + v.Error
	}
	return []string{v.Job, paused, outcome, when, replica, strconv.Itoa(v.Running), strconv.Itoa(v.Missed), strconv.Itoa(v.Waiting)}
}

func (c *console) jobs(ctx context.Context, cmd *cli.Command) error {
	asJSON, err := isJSON(cmd)
	if err != nil {
		return err
	}
	if cmd.NArg() > 0 {
		return usagef("jobs: unknown %q: history, pause, resume, trigger or backfill, or nothing to list all", cmd.Args().First())
	}
	return c.withScheduler(cmd, func(f *fleet, s *scheduler.Scheduler) error {
		rows := newTable("JOB", "PAUSED", "LAST RUN", "STARTED", "REPLICA", "RUNNING", "MISSED", "WAITING")
		for known, err := range f.locker.List(ctx, redlock.Filter{}) {
			if err != nil {
				if !asJSON {
					err = errors.Join(rows.printFound(c.out), err) // what was found is told all the same
				}
				return listFailed(err)
			}
			job, isJob := scheduler.JobOf(known)
			if !isJob {
				continue
			}
			st, err := s.Status(ctx, job)
			v := jobViewOf(job, st)
			switch {
			case errors.Is(err, scheduler.ErrUnknownJob):
				continue // a lease with the name of a job's, or one that is claimed for the first time just now
			case errors.Is(err, scheduler.ErrRegister):
				v.Error = err.Error()
			case err != nil:
				return err
			}
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
	})
}

func (c *console) jobHistory(ctx context.Context, cmd *cli.Command) error {
	asJSON, err := isJSON(cmd)
	if err != nil {
		return err
	}
	job, err := oneArgument(cmd, "JOB")
	if err != nil {
		return err
	}
	number := cmd.Int("number")
	if number < 0 {
		return usagef("--number %d: a number of lines, or 0 for all", number)
	}
	return c.withScheduler(cmd, func(_ *fleet, s *scheduler.Scheduler) error {
		history, err := s.History(ctx, job)
		if err != nil {
			return err
		}
		if number > 0 {
			history = history[max(0, len(history)-number):]
		}
		rows := newTable("SCHEDULED", "KIND", "OUTCOME", "TICKS", "STARTED", "TOOK", "REPLICA", "TOKEN", "ATTEMPT", "ERROR")
		for _, r := range history {
			if asJSON {
				if err := printLine(c.out, runViewOf(r)); err != nil {
					return err
				}
				continue
			}
			rows.add(historyCells(r)...)
		}
		if asJSON {
			return nil
		}
		return rows.print(c.out)
	})
}

func historyCells(r scheduler.Record) []string {
	outcome, started, took, token, attempt := string(r.Outcome), "-", "-", "-", "-"
	if r.Reason != "" {
		outcome += " (" + string(r.Reason) + ")"
	}
	if !r.Started.IsZero() {
		started, token, attempt = r.Started.Format(time.RFC3339), r.Token.String(), strconv.Itoa(r.Attempt)
		if !r.Ended.IsZero() {
			took = brief(r.Ended.Sub(r.Started))
		}
	}
	return []string{
		r.Scheduled.Format(time.RFC3339), string(r.Kind), outcome, strconv.Itoa(r.Ticks),
		started, took, orDash(r.Replica), token, attempt, orDash(r.Err),
	}
}

// controlJob is what pause, resume and trigger have in common.
func (c *console) controlJob(ctx context.Context, cmd *cli.Command, told string, do func(*scheduler.Scheduler, string) error) error {
	asJSON, err := isJSON(cmd)
	if err != nil {
		return err
	}
	job, err := oneArgument(cmd, "JOB")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, controlPatience)
	defer cancel()
	return c.withScheduler(cmd, func(_ *fleet, s *scheduler.Scheduler) error {
		if _, err := s.Status(ctx, job); err != nil { // at once where there is no such job, or no quorum
			return err
		}
		if err := do(s, job); err != nil {
			return err
		}
		return c.toldJob(asJSON, job, told)
	})
}

// controlPatience bounds what waits for the lease under which people's wishes are written. It is held for
// moments, or for a TTL if its holder has crashed.
const controlPatience = 15 * time.Second

func (c *console) toldJob(asJSON bool, job, done string) error {
	if asJSON {
		return printJSON(c.out, struct {
			Job  string `json:"job"`
			Done string `json:"done"`
		}{job, done})
	}
	_, err := fmt.Fprintf(c.out, "%s: %s\n", printable(job), done)
	return err
}

func (c *console) backfill(ctx context.Context, cmd *cli.Command) error {
	var span [2]time.Time
	for i, name := range []string{"from", "to"} {
		text := cmd.String(name)
		if text == "" {
			return usagef("backfill: --%s is missing; give a time as 2030-01-31T18:00:00Z", name)
		}
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return usagef("--%s %q: no time as 2030-01-31T18:00:00Z or 2030-01-31T18:00:00+01:00", name, text)
		}
		span[i] = at
	}
	if span[1].Before(span[0]) {
		return usagef("backfill: --to is before --from")
	}
	if span[1].After(time.Now()) {
		return usagef("backfill: --to is in the future")
	}
	return c.controlJob(ctx, cmd, "backfill requested", func(s *scheduler.Scheduler, job string) error {
		return s.Backfill(ctx, job, span[0], span[1])
	})
}

// withScheduler lends a Scheduler that has no jobs of its own.
func (c *console) withScheduler(cmd *cli.Command, use func(*fleet, *scheduler.Scheduler) error) error {
	f, err := c.openForLooking(cmd)
	if err != nil {
		return err
	}
	defer f.close()
	opts := []scheduler.Option{scheduler.WithTTL(min(redlock.DefaultTTL, cmd.Duration("max-ttl")))}
	if cmd.IsSet("identity") {
		opts = append(opts, scheduler.WithIdentity(cmd.String("identity")))
	}
	s, err := scheduler.New(f.locker, opts...)
	if err != nil {
		return err
	}
	return use(f, s)
}
