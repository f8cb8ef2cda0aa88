package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/quorate/quorate/redlock"
)

const (
	defaultMaxDuration = 24 * time.Hour
	// sayAfter is how long a wait is nobody's concern.
	sayAfter = time.Second
	// releaseTimeout bounds the waiting for nodes at the end.
	releaseTimeout = 2 * time.Second
)

func (c *console) runCommand() *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "run a program while holding a name",
		UsageText: "quorate run [FLAG...] NAME -- PROGRAM [ARGUMENT...]",
		Description: `Acquires NAME, runs the program, and gives the name back as soon as the program has ended. The exit code is the program's own. The lease is extended while the program runs, for --max-duration at most.

    quorate run nightly-backup -- pg_dump -f /backup/db.dump
    quorate run --no-wait deploy -- ./deploy.sh || echo "somebody else deploys"
    quorate run --wait 30s sku:42 -- sh -c 'curl -H "X-Token: $QUORATE_TOKEN" …'

When the lease cannot be extended the program is sent TERM, and KILL when --grace is over, before anybody else can have the name; then the exit code is 122. Only where the nodes have lost the lease early, because somebody freed the name by hand or a majority restarted empty, may another have it at once. ` + programText + `

The program is given stdin, stdout and stderr as they are, and the terminal if these are one: then Ctrl-C and Ctrl-Z are the program's. Other signals to quorate (INT, TERM, HUP, QUIT, USR1, USR2, WINCH) are passed on. What the program leaves running when it ends is neither waited for nor covered by the lease.

A second process of quorate kills the program, and what it has started, at once when quorate itself was killed, and in time when quorate is stopped or stuck for so long that the lease ends; not on Windows. A program that is stopped, or a machine that stands still, may act too late all the same when it goes on. Only the resource can refuse that: give it QUORATE_TOKEN.

Environment of the program: quorate's own, QUORATE_NODES included (it holds passwords, and any process of this user could read it from quorate), and QUORATE_NAME and QUORATE_TOKEN.`,
		Flags: append([]cli.Flag{
			&cli.DurationFlag{Name: "wait", Usage: "wait for the name for `TIME` at most; default: without limit"},
			&cli.BoolFlag{Name: "no-wait", Usage: "ask once, and exit with 120 if the name is taken"},
			&cli.DurationFlag{Name: "max-duration", Value: defaultMaxDuration, Usage: "extend the lease for `TIME` at most, so that a program that hangs does not hold the name for ever"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print nothing but errors"},
		}, leaseFlags()...),
		Action: c.runAction,
	}
}

// programText is true of every program that is run under a lease.
const programText = `These signals go to the program's process group, and so to what it has started. On Windows it is killed at once, alone.`

// leaseFlags are those of a lease under a program.
func leaseFlags() []cli.Flag {
	return []cli.Flag{
		&cli.DurationFlag{Name: "ttl", Value: redlock.DefaultTTL, Usage: "how long the nodes keep a lease that is not extended: after `TIME`, whoever crashed is replaced"},
		&cli.DurationFlag{Name: "grace", DefaultText: "a quarter of the TTL", Usage: "`TIME` that the program has between TERM and KILL when the lease cannot be extended: the last of that lease, at most 45 % of the TTL"},
	}
}

// terms are the times of a lease under a program.
type terms struct {
	ttl   time.Duration
	grace time.Duration
}

func termsOf(cmd *cli.Command) (terms, error) {
	t := terms{ttl: cmd.Duration("ttl"), grace: cmd.Duration("ttl") / 4}
	if cmd.IsSet("grace") {
		t.grace = cmd.Duration("grace")
	}
	if longest := t.ttl * 9 / 20; t.grace < 0 || t.grace > longest {
		return t, usagef("--grace %v: with --ttl %v it is between 0 and %v, so that time is left in which the lease can be extended", t.grace, t.ttl, longest)
	}
	return t, nil
}

// margin is what the context of the lease ends before the validity.
func (t terms) margin() time.Duration { return t.grace + reserve(t.ttl) }

// extensions is how often a lease is extended, at a third of its TTL, in that time.
func (t terms) extensions(d time.Duration) int {
	if t.ttl < 3 {
		return 0 // refused later
	}
	return int(min(int64(d/(t.ttl/3)), math.MaxInt32))
}

func (c *console) runAction(ctx context.Context, cmd *cli.Command) error {
	names, program, err := c.commandLine(cmd.Args().Slice(), "NAME")
	if err != nil {
		return err
	}
	t, err := termsOf(cmd)
	if err != nil {
		return err
	}
	wait, longest := cmd.Duration("wait"), cmd.Duration("max-duration")
	switch {
	case cmd.IsSet("wait") && cmd.Bool("no-wait"):
		return usagef("--wait and --no-wait exclude each other")
	case cmd.IsSet("wait") && wait <= 0:
		return usagef("--wait %v is not above zero: --no-wait asks once", wait)
	case longest <= 0:
		return usagef("--max-duration %v is not above zero", longest)
	}
	f, err := c.openFleet(cmd, redlock.WithTTL(t.ttl), redlock.WithMargin(t.margin()),
		redlock.WithAutoExtend(true), redlock.WithMaxExtensions(t.extensions(longest)))
	if err != nil {
		return err
	}
	defer f.close()
	guard, err := startGuard()
	if err != nil {
		return err
	}
	defer guard.close()

	// Signals are the program's, and until it runs they end the waiting.
	signals, stop := c.signals(ctx, slices.Concat(endingSignals, otherSignals)...)
	defer stop()
	r := &runner{console: c, fleet: f, name: names[0], quiet: cmd.Bool("quiet"), signals: signals}
	lease, err := r.acquire(context.WithoutCancel(ctx), wait, cmd.Bool("no-wait"))
	if err != nil {
		return err
	}
	return r.run(program, lease, t, guard)
}

// A runner runs one program under one lease.
type runner struct {
	*console
	fleet   *fleet
	name    string
	quiet   bool
	signals <-chan os.Signal
	began   time.Time // to ask for the name
}

// acquire gets the name, or says why not.
func (r *runner) acquire(ctx context.Context, wait time.Duration, once bool) (*redlock.Lease, error) {
	r.began = time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		lease *redlock.Lease
		err   error
	}
	answers, obstacles := make(chan answer, 1), make(chan error, 1)
	go func() {
		waiting, stop := ctx, context.CancelFunc(func() {})
		if wait > 0 {
			waiting, stop = context.WithTimeout(ctx, wait)
		}
		defer stop()
		lease, err := r.fleet.locker.TryAcquire(waiting, r.name)
		if err != nil && !once && waiting.Err() == nil && worthWaiting(err) {
			obstacles <- err
			lease, err = r.fleet.locker.Acquire(waiting, r.name)
		}
		answers <- answer{lease, err}
	}()
	long := time.NewTimer(sayAfter)
	defer long.Stop()
	for {
		select {
		case a := <-answers:
			return a.lease, r.refusal(a.err)
		case <-long.C:
			select {
			case err := <-obstacles:
				if !r.quiet {
					r.say("waiting: %v", r.refusal(err))
				}
			default: // no answer yet
				long.Reset(sayAfter)
			}
		case s := <-r.signals:
			if !slices.Contains(endingSignals, s) {
				continue
			}
			cancel()
			if a := <-answers; a.lease != nil {
				r.release(a.lease)
			}
			return nil, signalled{s}
		}
	}
}

// worthWaiting tells errors that time may mend.
func worthWaiting(err error) bool {
	for _, passing := range []error{redlock.ErrTaken, redlock.ErrNoQuorum, redlock.ErrQuarantined, redlock.ErrNoValidity, redlock.ErrStaleToken} {
		if errors.Is(err, passing) {
			return !errors.Is(err, redlock.ErrSameServer)
		}
	}
	return false
}

// refusal words why the name was not to be had.
func (r *runner) refusal(err error) error {
	var quorum *redlock.QuorumError
	if !errors.As(err, &quorum) {
		if errors.Is(err, context.DeadlineExceeded) {
			return failuref(exitNoQuorum, "acquire %q: the time to wait was over before a majority of the nodes had answered", r.name)
		}
		return err
	}
	var gaveUp *redlock.AcquireError
	after := ""
	if errors.As(err, &gaveUp) {
		after = fmt.Sprintf("waited %s: ", brief(time.Since(r.began)))
	}
	if !errors.Is(quorum, redlock.ErrTaken) || exitCode(quorum) != exitTaken {
		return failuref(exitCode(quorum), "%s%s", after, r.fleet.explain(quorum))
	}
	return failuref(exitTaken, "%s%q is held by %s", after, r.name, r.holder(quorum))
}

// holder says who has the name, since when, and for how long.
func (r *runner) holder(taken *redlock.QuorumError) string {
	if taken.Holder == "" {
		return "others who ask for it at the same time"
	}
	text := printable(taken.Holder)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	// A token is the time of the acquisition, but where a clock is or was wrong.
	if status, err := r.fleet.locker.Inspect(ctx, r.name); err == nil && status.Holder == taken.Holder {
		if age := time.Since(time.UnixMicro(int64(status.Token))); age >= time.Second {
			text += " for about " + brief(age.Round(time.Second))
		}
	}
	if taken.Wait > 0 {
		text += fmt.Sprintf("; free in %s, unless it is extended", brief(taken.Wait))
	}
	return text
}

// run runs the program until it, or the lease, ends.
func (r *runner) run(p program, lease *redlock.Lease, t terms, g *guard) error {
	defer r.release(lease)
	covered := lease.Context()
	ch, err := r.start(start{
		program:     p,
		interactive: true,
		env:         environment("NAME", r.name, "TOKEN", lease.Token().String()),
		lease:       lease,
		reserve:     reserve(t.ttl),
		guard:       g,
	})
	if err != nil {
		return err
	}
	for {
		select {
		case <-ch.ended:
			ch.wait()
			if covered.Err() != nil {
				r.say("%s; the program has ended meanwhile (%s)", r.loss(lease), ch.endOf())
				return status(exitLeaseLost)
			}
			return status(ch.code())
		case <-covered.Done():
			r.say("%s; ending the program", r.loss(lease))
			if ch.end(lease, t.grace, reserve(t.ttl), nil) {
				r.say("the program had not ended %s after TERM, and was killed", brief(t.grace))
			}
			return status(exitLeaseLost)
		case s := <-r.signals:
			ch.signal(s)
		}
	}
}

// loss says how the lease ended.
func (r *runner) loss(lease *redlock.Lease) string {
	err := lease.Err()
	switch {
	case errors.Is(err, redlock.ErrExtensionLimit):
		return fmt.Sprintf("lease of %q: --max-duration is over", r.name)
	case errors.Is(err, redlock.ErrLeaseLost):
		return fmt.Sprintf("lease of %q lost: the nodes say that it is not ours any more, and another may have it", r.name)
	}
	text := fmt.Sprintf("lease of %q: no majority of the nodes has extended it, and its time is over", r.name)
	var ended *redlock.LeaseError
	if errors.As(err, &ended) && ended.Last != nil {
		text += " (" + inWords(ended.Last) + ")"
	}
	return text
}

// release gives the name back.
func (r *runner) release(lease *redlock.Lease) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	over := lease.Err() != nil // which has been told
	err := lease.Release(ctx)
	if !over && (errors.Is(err, redlock.ErrNoQuorum) || errors.Is(err, context.DeadlineExceeded)) {
		r.say("the release of %q did not reach a majority of the nodes; it is free when its TTL is over", r.name)
	}
}
