package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := command(ctx, os.Stdout, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "model:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, w io.Writer, args []string) error {
	set := flag.NewFlagSet("model", flag.ContinueOnError)
	quick := set.Bool("quick", false, "only what the tests run")
	trace := set.String("trace", "", "show how a `mutant` fails, and nothing else")
	out := set.String("out", "", "write the report to this `file`")
	if err := set.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "quorate-model-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if *trace != "" {
		return show(ctx, w, dir, *trace)
	}
	r, err := suite(ctx, w, dir, *quick)
	if err != nil {
		return err
	}
	if *out != "" {
		version, err := run(ctx, dir, "spin", "-V")
		if err != nil {
			return err
		}
		if err := os.WriteFile(*out, []byte(r.markdown(strings.TrimSpace(version))), 0o600); err != nil {
			return err
		}
	}
	return r.failure()
}

// A report is what came out of the configurations and the mutants, in their order.
type report struct {
	searches []result
	mutants  []result
}

type result struct {
	search
	configuration configuration
	mutant        mutant // the zero mutant for a search of the protocol itself
}

// unexpected says what is wrong with a result, or "".
func (r *result) unexpected() string {
	switch {
	case r.violated == r.mutant.property:
		return ""
	case r.mutant.property == "":
		return fmt.Sprintf("%s is violated:\n  %s", r.violated, strings.Join(r.trace, "\n  "))
	case r.violated == "":
		return fmt.Sprintf("nothing is violated, %s should be: the rule may be none, or the model does not see it", r.mutant.property)
	}
	return fmt.Sprintf("%s is violated, %s should be", r.violated, r.mutant.property)
}

func (r *result) title() string {
	if r.mutant.flag == "" {
		return r.configuration.name
	}
	return r.mutant.flag + " in " + r.configuration.name
}

func (r *report) failure() error {
	for _, set := range [][]result{r.searches, r.mutants} {
		for i := range set {
			if what := set[i].unexpected(); what != "" {
				return fmt.Errorf("%s: %s", set[i].title(), what)
			}
		}
	}
	return nil
}

// suite searches everything, and tells of each search when it is done.
func suite(ctx context.Context, w io.Writer, dir string, quick bool) (*report, error) {
	var r report
	begin := time.Now()
	const row = "%-24s %-24s %10s %8s %8s  %s\n"
	_, _ = fmt.Fprintf(w, row, "configuration", "mutant", "states", "depth", "seconds", "verdict")
	tell := func(r *result) {
		verdict, depth := "exhausted, all properties hold", r.depth
		if r.violated != "" {
			verdict, depth = fmt.Sprintf("%s violated in %d steps", r.violated, len(r.trace)), len(r.trace)
		}
		if what := r.unexpected(); what != "" {
			verdict = "WRONG: " + what
		}
		_, _ = fmt.Fprintf(w, row, r.configuration.name, r.mutant.flag, fmt.Sprint(r.states), fmt.Sprint(depth), fmt.Sprintf("%.1f", r.took.Seconds()), verdict)
	}
	for _, c := range configurations {
		if quick && !c.quick {
			continue
		}
		s, err := check(ctx, dir, c, exhaustive)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		r.searches = append(r.searches, result{search: s, configuration: c})
		tell(&r.searches[len(r.searches)-1])
	}
	for _, m := range mutants {
		if quick && !m.quick {
			continue
		}
		s, err := m.check(ctx, dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.flag, err)
		}
		r.mutants = append(r.mutants, result{search: s, configuration: find(m.in), mutant: m})
		tell(&r.mutants[len(r.mutants)-1])
	}
	_, _ = fmt.Fprintf(w, "%d searches in %.0f s\n", len(r.searches)+len(r.mutants), time.Since(begin).Seconds())
	return &r, nil
}

func (m mutant) check(ctx context.Context, dir string) (search, error) {
	how := exhaustive
	if m.shortest() {
		how = shortest
	}
	return check(ctx, dir, find(m.in), how, m.flag)
}

// shortest tells whether the shortest way to the violation is looked for. In the larger
// configurations that takes gigabytes, while any way is found soon. Those of the clock have no
// end, and so the first way that is found is absurdly long.
func (m mutant) shortest() bool {
	c := find(m.in)
	return m.property != "" && (c.quick || c.model == clock || c.name == "extension, unfreed")
}

// show prints the shortest way in which a mutant fails, with the nodes kept in their places.
func show(ctx context.Context, w io.Writer, dir, flag string) error {
	for _, m := range mutants {
		if m.flag != flag || m.property == "" {
			continue
		}
		s, err := check(ctx, dir, find(m.in), shortest, flag, "NAMED_NODES")
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(w, "%s: %s\nin the configuration %q this violates %s:\n", flag, m.what, m.in, s.violated)
		for i, step := range s.trace {
			_, _ = fmt.Fprintf(w, "%3d  %s\n", i+1, step)
		}
		return nil
	}
	return fmt.Errorf("there is no mutant %q that fails", flag)
}
