package main

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// verdict is nil if a run went as it has to: with the gate nothing is wrong, and without it something
// is.
func (r result) verdict() error {
	switch {
	case r.Gated && !r.sound():
		return fmt.Errorf("with the gate: %s", strings.Join(r.Wrong, "; "))
	case r.Gated && !r.shown():
		return errors.New("with the gate: no write came too late, so the run shows nothing")
	case !r.Gated && r.sound():
		return errors.New("without the gate nothing went wrong, so the checks see nothing")
	}
	return nil
}

func (r result) gate() string {
	if r.Gated {
		return "gate"
	}
	return "no gate"
}

// String is the run in some lines.
func (r result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s, %v: %d writes, %d stale ones refused, %d leases shut out, %d unclear, %d failed; %d stops (%d in a sale), %d kills; %d units sold, %d gone; "+
		"%d writes over others, %d out of order, %d negative, %d missing, %d ghosts, %d unfounded refusals",
		r.Store, r.gate(), r.Took.Round(100*time.Millisecond), r.Writes, r.Refused, r.ShutOut, r.Unclear, r.Failed, r.Stops, r.Caught, r.Kills,
		r.Sold, r.Gone, r.Lost, r.Disorder, r.Negative, r.Missing, r.Ghosts, r.Unfounded)
	for _, wrong := range r.Wrong {
		b.WriteString("\n  wrong: " + wrong)
	}
	if err := r.verdict(); err != nil {
		b.WriteString("\n  FAILED: " + err.Error())
	}
	for _, m := range r.Messages[:min(enough, len(r.Messages))] {
		b.WriteString("\n  told: " + m)
	}
	return b.String()
}

// table is all runs side by side.
func table(results []result) string {
	var b strings.Builder
	b.WriteString("| store | | writes | stale writes refused | stops (in a sale) | kills | units sold | units gone | writes over others | out of order | below zero | verdict |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		verdict, refused := "sound", fmt.Sprint(r.Refused)
		if !r.sound() {
			verdict = "**wrong**"
		}
		if !r.Gated {
			refused = "–"
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %s | %d (%d) | %d | %d | %d | %d | %d | %d | %s |\n", r.Store, r.gate(), r.Writes, refused,
			r.Stops, r.Caught, r.Kills, r.Sold, r.Gone, r.Lost, r.Disorder, r.Negative, verdict)
	}
	return b.String()
}
