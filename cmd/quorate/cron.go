package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // time zones on machines that have none

	"github.com/cenkalti/backoff/v4"
	"github.com/urfave/cli/v3"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/scheduler"
)

func (c *console) cronCommand() *cli.Command {
	return &cli.Command{
		Name:      "cron",
		Usage:     "run a program at times, once in the whole fleet",
		UsageText: "quorate cron [FLAG...] NAME SPEC -- PROGRAM [ARGUMENT...]",
		Description: `Runs the program at the times that SPEC says, each time on one replica. Start it on each replica, with the same SPEC and flags. It goes on until it is told to stop (INT, TERM, HUP, QUIT), and then waits for its runs, for --drain at most; a second signal kills them.

    quorate cron report "0 2 * * *" --timezone Europe/Berlin -- ./report
    quorate cron sync "@every 90s" --overlap queue -- ./sync
    quorate cron settle "0 0 1 * *" --at-least-once 5 --retry 2 --timeout 6h -- ./settle

SPEC has five fields (minute, hour, day of month, month, day of week) or six with the second first, or is @hourly, @daily, @weekly, @monthly, @yearly, "@every 90s" or "@at 2030-01-31T18:00:00Z". A CRON_TZ=Europe/Berlin before it sets its time zone. Put it in quotes.

A run is started at most once, and one whose replica dies is not run again, unless --at-least-once says so. Any exit code but 0 is a failure. A line on stderr tells of each run of this replica, and of times that nobody took or that were missed; "quorate jobs" tells what became of the last ones, wherever they ran.

The program is sent TERM when --timeout or --drain is over or the lease cannot be extended, and KILL when --grace is over: in the last case before another replica can run the job. ` + programText + ` The program has no stdin. If quorate itself is killed or stopped, see "quorate run --help".

Environment of the program: quorate's own, and QUORATE_JOB, QUORATE_SCHEDULED (the time, as 2006-01-02T15:04:05Z07:00), QUORATE_KIND (scheduled, triggered or backfilled), QUORATE_ATTEMPT (from 1) and QUORATE_TOKEN, which grows with every run: give it to the resource with every write.`,
		Flags:  append(cronFlags(), leaseFlags()...),
		Action: c.cronAction,
	}
}

func cronFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "overlap", Value: "skip", Usage: "what becomes of a time that comes during a run: `POLICY` skip, queue or allow"},
		&cli.StringFlag{Name: "misfire", Value: "newest", Usage: "which of the times that nobody was there for are run: `POLICY` newest, skip or all:N"},
		&cli.DurationFlag{Name: "catch-up", Value: scheduler.DefaultCatchUp, Usage: "how old they may be: `TIME`"},
		&cli.DurationFlag{Name: "start-deadline", Value: scheduler.DefaultStartDeadline, Usage: "`TIME` after which a run is late, and an alarm if nobody has begun it"},
		&cli.DurationFlag{Name: "timeout", Value: scheduler.DefaultTimeout, Usage: "`TIME` that a run may take"},
		&cli.IntFlag{Name: "at-least-once", Value: 1, DefaultText: "at most once", Usage: "have another replica take over the run of one that died, `N` attempts in all"},
		&cli.IntFlag{Name: "retry", Usage: "run a program that failed again on this replica, `N` times at most, after growing pauses"},
		&cli.DurationFlag{Name: "jitter", Usage: "delay each time by something below `TIME`, the same on all replicas"},
		&cli.StringFlag{Name: "dst-gap", Value: "run-after", Usage: "a time that the clocks skip: `POLICY` run-after or skip"},
		&cli.StringFlag{Name: "dst-fold", Value: "once", Usage: "a time that the clocks repeat: `POLICY` once or twice"},
		&cli.StringFlag{Name: "timezone", Value: "UTC", Usage: "`ZONE` of a SPEC that names none, as Europe/Berlin"},
		&cli.IntFlag{Name: "concurrency", Value: 16, Usage: "with --overlap allow: at most `N` runs at the same time on this replica"},
		&cli.StringSliceFlag{Name: "label", Usage: "`KEY=VALUE` for spans; several by commas, or by several flags"},
		&cli.DurationFlag{Name: "drain", Value: scheduler.DefaultDrainTimeout, Usage: "`TIME` that runs have to end when quorate is told to stop"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "tell of nothing but failures and alarms"},
	}
}

// A crontab runs a program for each tick of one job.
type crontab struct {
	*console
	program program
	terms   terms
	quiet   bool
	guard   *guard
}

func (c *console) cronAction(ctx context.Context, cmd *cli.Command) error {
	given, program, err := c.commandLine(cmd.Args().Slice(), "NAME", "SPEC")
	if err != nil {
		return err
	}
	name, spec := given[0], strings.TrimSpace(given[1])
	t, err := termsOf(cmd)
	if err != nil {
		return err
	}
	opts, err := jobOptions(cmd, t)
	if err != nil {
		return err
	}
	j := &crontab{console: c, program: program, terms: t, quiet: cmd.Bool("quiet")}
	running := []scheduler.Option{scheduler.WithDrainTimeout(cmd.Duration("drain")), scheduler.WithObserver(j.observe)}
	// The margin is for the leases that runs have, which are the Locker's but for their TTL.
	leases := []redlock.Option{redlock.WithTTL(t.ttl), redlock.WithMargin(t.margin())}
	if !cmd.Bool("verbose") {
		log := c.warnings()
		leases = append(leases, redlock.WithLogger(log))
		running = append(running, scheduler.WithLogger(log))
	}
	f, err := c.openFleet(cmd, leases...)
	if err != nil {
		return err
	}
	defer f.close()
	running = append(running, scheduler.WithIdentity(f.locker.Identity()))
	sched, err := scheduler.New(f.locker, running...)
	if err != nil {
		return asUsage(err)
	}
	if j.guard, err = startGuard(); err != nil {
		return err
	}
	defer j.guard.close()
	return c.work(ctx, func(os.Signal) {}, func(ctx context.Context, s *shift) error {
		err := sched.Add(name, spec, func(ctx context.Context, run scheduler.Run) error { return j.run(ctx, run, s) }, opts...)
		if err != nil {
			return asUsage(err)
		}
		return sched.Run(ctx)
	})
}

// asUsage has what a Scheduler refuses be about the command line.
func asUsage(err error) error { return &usageError{err} }

// run runs the program for one tick.
func (j *crontab) run(ctx context.Context, run scheduler.Run, s *shift) error {
	lease, _ := redlock.LeaseFrom(ctx)
	ch, err := j.start(start{
		program: j.program,
		env: environment(
			"JOB", run.Job,
			"SCHEDULED", run.Scheduled.Format(time.RFC3339),
			"KIND", string(run.Kind),
			"ATTEMPT", strconv.Itoa(run.Attempt),
			"TOKEN", run.Token.String(),
		),
		lease:   lease,
		reserve: reserve(j.terms.ttl),
		guard:   j.guard,
	})
	if err != nil {
		return err
	}
	killed := false
	cause := cover(ctx, ch, s.hurried, func(error) {
		killed = ch.end(lease, j.terms.grace, reserve(j.terms.ttl), s.hurried)
	})
	switch {
	case killed:
		return fmt.Errorf("the program had not ended %s after TERM, and was killed: %w", brief(j.terms.grace), cause)
	case cause != nil:
		return fmt.Errorf("the program was ended: %w", cause)
	case ch.code() != 0:
		return fmt.Errorf("the program ended with %s", ch.endOf())
	}
	return nil
}

// observe tells of the ticks that this replica ran, and of those that went wrong.
func (j *crontab) observe(e scheduler.Event) {
	tick := fmt.Sprintf("%s %s", e.Job, e.Scheduled.Format(time.RFC3339))
	if e.Ticks > 1 {
		tick += fmt.Sprintf(" and %d more", e.Ticks-1)
	}
	what := string(e.Outcome)
	if e.Reason != "" {
		what += " (" + string(e.Reason) + ")"
	}
	why := ""
	if e.Err != nil {
		why = ": " + inWords(e.Err)
	}
	switch e.Outcome {
	case scheduler.Elsewhere:
	case scheduler.Missed:
		asAsked := e.Reason == scheduler.Paused || e.Reason == scheduler.DST || e.Reason == scheduler.Overlap
		if !j.quiet || !asAsked {
			j.say("%s: %s%s", tick, what, why)
		}
	case scheduler.Ran, scheduler.Failed, scheduler.Panicked:
		if !j.quiet || e.Outcome != scheduler.Ran {
			j.say("%s: %s, took %s, began %s late, attempt %d, token %d%s", tick, what, brief(e.Duration), brief(e.Lag), e.Attempt, e.Token, why)
		}
	case scheduler.Mismatch:
		j.say("%s: another replica has another SPEC for this job; the times of both are run%s", e.Job, why)
	default:
		j.say("%s: %s%s", tick, what, why)
	}
}

// jobOptions are the flags as the scheduler takes them.
func jobOptions(cmd *cli.Command, t terms) ([]scheduler.JobOption, error) {
	labels, err := labelsOf(cmd)
	if err != nil {
		return nil, err
	}
	zone, err := time.LoadLocation(cmd.String("timezone"))
	if err != nil || cmd.String("timezone") == "" {
		return nil, usagef("--timezone %q: there is no such time zone; name one as Europe/Berlin", cmd.String("timezone"))
	}
	overlap, err := choice(cmd, "overlap", map[string]scheduler.OverlapPolicy{
		"skip": scheduler.OverlapSkip, "queue": scheduler.OverlapQueue, "allow": scheduler.OverlapAllow,
	})
	if err != nil {
		return nil, err
	}
	gap, err := choice(cmd, "dst-gap", map[string]scheduler.Gap{"run-after": scheduler.GapRunAfter, "skip": scheduler.GapSkip})
	if err != nil {
		return nil, err
	}
	fold, err := choice(cmd, "dst-fold", map[string]scheduler.Fold{"once": scheduler.FoldOnce, "twice": scheduler.FoldTwice})
	if err != nil {
		return nil, err
	}
	misfire, err := misfireOf(cmd.String("misfire"))
	if err != nil {
		return nil, err
	}
	opts := []scheduler.JobOption{
		scheduler.WithTTL(t.ttl),
		scheduler.WithOverlap(overlap),
		scheduler.WithMisfire(misfire),
		scheduler.WithCatchUp(cmd.Duration("catch-up")),
		scheduler.WithStartDeadline(cmd.Duration("start-deadline")),
		scheduler.WithTimeout(cmd.Duration("timeout")),
		scheduler.WithJitter(cmd.Duration("jitter")),
		scheduler.WithDST(gap, fold),
		scheduler.WithLocation(zone),
		scheduler.WithLabels(labels),
		scheduler.WithAtLeastOnce(cmd.Int("at-least-once")),
	}
	if cmd.IsSet("concurrency") {
		if overlap != scheduler.OverlapAllow {
			return nil, usagef("--concurrency needs --overlap allow")
		}
		opts = append(opts, scheduler.WithConcurrency(cmd.Int("concurrency")))
	}
	switch n := cmd.Int("retry"); {
	case n < 0:
		return nil, usagef("--retry %d is negative", n)
	case n > 0:
		opts = append(opts, scheduler.WithRetry(func() backoff.BackOff {
			pauses := backoff.NewExponentialBackOff()
			pauses.MaxElapsedTime = 0 // the timeout of the run is the limit
			return backoff.WithMaxRetries(pauses, uint64(n))
		}))
	}
	return opts, nil
}

// choice is the value of a flag that has a few.
func choice[T any](cmd *cli.Command, flag string, values map[string]T) (T, error) {
	value, ok := values[cmd.String(flag)]
	if !ok {
		return value, usagef("--%s %q is none of its values; quorate cron --help lists them", flag, cmd.String(flag))
	}
	return value, nil
}

func misfireOf(text string) (scheduler.MisfirePolicy, error) {
	limit, isAll := strings.CutPrefix(text, "all:")
	switch {
	case text == "newest":
		return scheduler.MisfireNewest(), nil
	case text == "skip":
		return scheduler.MisfireSkip(), nil
	case isAll:
		if n, err := strconv.Atoi(limit); err == nil && n >= 1 {
			return scheduler.MisfireAll(n), nil
		}
	}
	return scheduler.MisfirePolicy{}, usagef("--misfire %q: newest, skip, or all:N with N from 1 to 1000", text)
}

// labelsOf are the labels of a job or a candidate.
func labelsOf(cmd *cli.Command) (map[string]string, error) {
	labels := make(map[string]string)
	for _, text := range cmd.StringSlice("label") {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return nil, usagef("--label %q is not KEY=VALUE", text)
		}
		labels[key] = value
	}
	return labels, nil
}
