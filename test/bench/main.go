package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	if text := os.Getenv(clientEnv); text != "" {
		if err := runClient(text); err != nil {
			fmt.Fprintln(os.Stderr, "bench client:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := perform(ctx, fullSizes(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// perform measures what the command line asks for, and writes the page. A row that fails keeps nobody
// from the others.
func perform(ctx context.Context, s sizes, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	which := flags.String("rows", "", "numbers of rows, with commas; none: all")
	flags.DurationVar(&s.span, "for", s.span, "time of one measurement")
	flags.IntVar(&s.rounds, "rounds", s.rounds, "rounds of which the median is taken")
	flags.DurationVar(&s.hold, "hold", s.hold, "how long a process holds the hot name, row 6")
	flags.IntVar(&s.jobs, "jobs", s.jobs, "jobs of row 9")
	flags.DurationVar(&s.jobsIn, "jobs-in", s.jobsIn, "when they are due, from the start of the replicas")
	flags.IntVar(&s.leaseTTLs, "ttls", s.leaseTTLs, "for how many TTLs the leases of row 7 are held")
	page := flags.String("out", "docs/performance.md", "the page; its chart is beside it")
	render := flags.Bool("render", false, "measure nothing: write the page of what was kept")
	cache := flags.String("cache", ".cache/bench.json", "where findings are kept between runs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(*which)
	if err != nil {
		return err
	}
	say := func(text string) { _, _ = fmt.Fprintln(out, text) }
	r, err := loadRecord(*cache, thisMachine())
	if err != nil {
		return err
	}

	if *render {
		return r.writePage(*page)
	}

	g, err := newGround(s, say)
	if err != nil {
		return err
	}
	defer func() { g.leave(&err, recover()) }()
	g.set()
	if r.Versions, err = versions(ctx, g.admins[0]); err != nil {
		return err
	}
	say("waiting until the nodes are old enough to count")
	if err := g.settle(ctx, s.MaxTTL); err != nil {
		return err
	}
	var failed []error
	for _, row := range chosen {
		f, err := g.row(ctx, row)
		if err != nil {
			failed = append(failed, fmt.Errorf("row %d: %w", row.number, err))
			say(fmt.Sprintf("row %d failed: %v", row.number, err))
			if ctx.Err() != nil {
				break
			}
			continue
		}
		r.Findings[row.number] = f
		say(f.terminal())
		// After each row: a run that is broken off leaves what it has.
		if err := errors.Join(r.save(*cache), r.writePage(*page)); err != nil {
			return err
		}
	}
	say(r.aims().markdown())
	return errors.Join(failed...)
}

func choose(which string) ([]row, error) {
	if which == "" {
		return rows, nil
	}
	var chosen []row
	for text := range strings.SplitSeq(which, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		i := slices.IndexFunc(rows, func(r row) bool { return r.number == n })
		if err != nil || i < 0 {
			return nil, fmt.Errorf("there is no row %q: they are 1 to %d", text, len(rows))
		}
		chosen = append(chosen, rows[i])
	}
	return chosen, nil
}

// row measures one row.
func (g *ground) row(ctx context.Context, r row) (*finding, error) {
	g.say(fmt.Sprintf("row %d: %s", r.number, r.title))
	begun, load := time.Now(), loadAverage()
	f, err := r.measure(ctx, g)
	if err != nil {
		return nil, err
	}
	f.Number, f.Title = r.number, r.title
	f.Date, f.Took, f.Load = begun.UTC().Format(time.DateOnly), time.Since(begun), load+" before, "+loadAverage()+" after"
	return f, nil
}

// terminal is the finding for who waits for it.
func (f *finding) terminal() string {
	var b strings.Builder
	for _, t := range f.Tables {
		b.WriteString(t.markdown() + "\n")
	}
	for _, note := range f.Notes {
		b.WriteString(note + "\n")
	}
	for _, a := range f.Aims {
		verdict := "kept"
		if !a.kept() {
			verdict = "missed"
		}
		fmt.Fprintf(&b, "%s: %s, aim %s: %s\n", a.What, unit(a.Figure, a.Unit), a.bound(), verdict)
	}
	fmt.Fprintf(&b, "in %v, load average %s\n", f.Took.Round(time.Second), f.Load)
	return b.String()
}
