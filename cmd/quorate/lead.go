package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
)

func (c *console) leadCommand() *cli.Command {
	return &cli.Command{
		Name:      "lead",
		Usage:     "run a program on one replica at a time: the leader",
		UsageText: "quorate lead [FLAG...] NAME -- PROGRAM [ARGUMENT...]",
		Description: `Stands in the election NAME, runs the program while this replica leads, and stands again when the term is over. Start it on each replica.

    quorate lead billing -- ./billing --port 8080
    quorate lead --health-cmd 'pg_isready -q' --healthz :8086 billing -- ./billing
    quorate lead --once migrate -- ./migrate

A program that ends gives the office up, and another replica may lead: after exit code 0 this one stands again at once, after any other it stands back for a while that grows with each failure. With --once, quorate ends with the program of its first term, and with its exit code. What does not lead waits; nobody who leads is displaced.

The program is sent TERM when the term ends: because quorate is told to stop (INT, TERM, HUP, QUIT), the health check fails, --max-term is over, or the lease cannot be extended. In the last case it is killed when --grace is over, before anybody else can lead, and in the others when --stop-grace is. A second signal to quorate kills it at once. USR1, USR2 and WINCH are passed on to it. ` + programText + ` The program has no stdin. If quorate itself is killed or stopped, see "quorate run --help".

Environment of the program: quorate's own, and QUORATE_NAME, QUORATE_TERM (the number of the term, which only ever grows) and QUORATE_TOKEN (the same: give it to the resource with every write).`,
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "once", Usage: "end after the first term, with the program's exit code"},
			&cli.DurationFlag{Name: "stop-grace", Value: leader.DefaultStopGrace, Usage: "`TIME` that the program has between TERM and KILL while the lease is still extended"},
			&cli.DurationFlag{Name: "max-term", Value: leader.DefaultTerm, Usage: "`TIME` after which the election is open again"},
			&cli.IntFlag{Name: "priority", Usage: "`PLACE` in the order of candidates: those with 0 come first, the last is 100"},
			&cli.StringFlag{Name: "address", Usage: "where others reach this replica when it leads: `TEXT` that quorate leaders shows"},
			&cli.StringSliceFlag{Name: "label", Usage: "`KEY=VALUE` that others are told of this replica when it leads; several by commas, or by several flags"},
			&cli.StringFlag{Name: "health-cmd", Usage: "`COMMAND` for the shell: while it fails, this replica does not lead"},
			&cli.DurationFlag{Name: "health-every", DefaultText: "a quarter of the TTL", Usage: "`TIME` between two health checks, within which each has to be done"},
			&cli.StringFlag{Name: "healthz", Usage: "serve liveness probes by HTTP at `ADDRESS`: 503 when the program outlives its term"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print nothing but errors"},
		}, leaseFlags()...),
		Action: c.leadAction,
	}
}

// A candidate runs a program in each of its terms.
type candidate struct {
	*console
	name      string
	program   program
	terms     terms
	stopGrace time.Duration
	once      bool
	quiet     bool
	guard     *guard

	mu      sync.Mutex
	current *child // or nil
	code    error  // of the first term, where once
}

func (c *console) leadAction(ctx context.Context, cmd *cli.Command) error {
	names, program, err := c.commandLine(cmd.Args().Slice(), "NAME")
	if err != nil {
		return err
	}
	t, err := termsOf(cmd)
	if err != nil {
		return err
	}
	k := &candidate{
		console: c, name: names[0], program: program, terms: t,
		stopGrace: cmd.Duration("stop-grace"), once: cmd.Bool("once"), quiet: cmd.Bool("quiet"),
	}
	if k.stopGrace < 0 {
		return usagef("--stop-grace %v is negative", k.stopGrace)
	}
	labels, err := labelsOf(cmd)
	if err != nil {
		return err
	}
	opts := []leader.Option{
		leader.WithTTL(t.ttl),
		leader.WithMargin(t.margin()),
		leader.WithStopGrace(k.stopGrace + time.Second), // what is not dead by then cannot be killed
		leader.WithMaxTerm(cmd.Duration("max-term")),
		leader.WithPriority(cmd.Int("priority")),
		leader.WithLabels(labels),
		leader.WithObserver(k.observe),
	}
	if cmd.IsSet("address") {
		opts = append(opts, leader.WithAddress(cmd.String("address")))
	}
	if command := cmd.String("health-cmd"); command != "" {
		opts = append(opts, leader.WithHealthCheck(k.healthCheck(command), cmd.Duration("health-every")))
	}
	var logging []redlock.Option
	if !cmd.Bool("verbose") {
		log := c.warnings("no longer fit to lead") // which the health check tells
		logging = append(logging, redlock.WithLogger(log))
		opts = append(opts, leader.WithLogger(log))
	}
	f, err := c.openFleet(cmd, logging...)
	if err != nil {
		return err
	}
	defer f.close()
	elector, err := leader.New(f.locker, k.name, opts...)
	if err != nil {
		return err
	}
	if k.guard, err = startGuard(); err != nil {
		return err
	}
	defer k.guard.close()
	if address := cmd.String("healthz"); address != "" {
		stop, err := serve(address, elector.Healthz())
		if err != nil {
			return fmt.Errorf("--healthz: %w", err)
		}
		defer stop()
	}
	return c.work(ctx, k.forward, func(ctx context.Context, s *shift) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		err := elector.Run(ctx, func(ctx context.Context, term leader.Term) error {
			if k.once {
				defer cancel()
			}
			return k.lead(ctx, term, s)
		})
		if err == nil && k.once {
			return k.code
		}
		return err
	})
}

// lead runs the program for one term.
func (k *candidate) lead(ctx context.Context, term leader.Term, s *shift) error {
	lease, _ := redlock.LeaseFrom(ctx)
	ch, err := k.begin(start{
		program: k.program,
		env:     environment("NAME", k.name, "TERM", term.Number.String(), "TOKEN", term.Number.String()),
		lease:   lease,
		reserve: reserve(k.terms.ttl),
		guard:   k.guard,
	})
	if err != nil {
		k.code = err
		if !k.once {
			k.say("%v", err)
		}
		return err
	}
	defer k.forget()
	cause := cover(ctx, ch, s.hurried, func(cause error) {
		grace := k.stopGrace
		if leaseOver(cause) {
			grace = k.terms.grace
		}
		if ch.end(lease, grace, reserve(k.terms.ttl), s.hurried) {
			k.say("the program had not ended after TERM, and was killed")
		}
	})
	k.code = status(ch.code())
	switch {
	case leaseOver(cause):
		k.code = status(exitLeaseLost)
		return cause
	case cause != nil, ch.code() == 0:
		return nil
	}
	return fmt.Errorf("the program ended with %s", ch.endOf())
}

// begin is start. A signal that comes meanwhile waits, and then goes to the program.
func (k *candidate) begin(s start) (*child, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	ch, err := k.start(s)
	k.current = ch // nil where that failed
	return ch, err
}

func (k *candidate) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.current = nil
}

// forward passes a signal on to the program, if this replica leads.
func (k *candidate) forward(s os.Signal) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current != nil {
		k.current.signal(s)
	}
}

// observe tells of terms.
func (k *candidate) observe(e leader.Event) {
	switch {
	case k.quiet:
	case e.Kind == leader.Began:
		k.say("leads %q: term %d", k.name, e.Term.Number)
	case e.Kind == leader.Ended && e.Err != nil:
		k.say("term %d of %q ended after %s: %s: %s", e.Term.Number, k.name, brief(e.Lasted), e.Outcome, inWords(e.Err))
	case e.Kind == leader.Ended:
		k.say("term %d of %q ended after %s: %s", e.Term.Number, k.name, brief(e.Lasted), e.Outcome)
	case e.Kind == leader.StoodBack:
		k.say("won %q and stood back, for the heir that was named or because this replica is not fit", k.name)
	}
}

// serve answers requests at the address until stop is called.
func serve(address string, handler http.Handler) (stop func(), err error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // until it is closed
	}()
	return func() {
		_ = server.Close()
		<-ended
	}, nil
}
