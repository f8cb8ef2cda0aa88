package main

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// leadersReport is what there was to say of an election.
type leadersReport struct {
	leadersConfig
	takeovers  map[string][]time.Duration
	terms      int
	unasked    int // terms that ended without a fault
	refused    int
	writes     int
	violations []string
	before     string // the load of the machine
	after      string
}

func (b *ballot) report(ctx context.Context) (*leadersReport, error) {
	entries, err := b.store.LRange(ctx, ledgerKey, 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	var tokens []int64
	for _, e := range entries {
		token, err := strconv.ParseInt(e, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read the ledger: %w", err)
		}
		tokens = append(tokens, token)
	}
	terms := termsOf(b.journal.since(0))
	r := &leadersReport{
		leadersConfig: b.leadersConfig, takeovers: b.takeovers, refused: b.refused, writes: len(tokens),
		before: b.before, after: load(),
		violations: append(checkTerms(terms), checkLedger(tokens)...),
	}
	// The first term, and one for each fault; those at the end come of the candidates' leaving.
	for _, t := range terms {
		if t.start < b.over {
			r.terms++
		}
	}
	r.unasked = r.terms - 1 - b.rounds*len(faults)
	if want := b.rounds; b.refused != want {
		r.violations = append(r.violations, fmt.Sprintf("%d of %d stale writes were refused", b.refused, want))
	}
	return r, nil
}

// aims are how soon another should lead, by the 99th percentile.
func (c leadersConfig) aims() map[string]time.Duration {
	return map[string]time.Duration{
		resigned: 20 * time.Millisecond, killed: c.ttl + 100*time.Millisecond,
		stoppedLate: c.ttl + 100*time.Millisecond, partitioned: c.ttl + 100*time.Millisecond,
	}
}

// quantile is that of sorted times, by the nearest rank.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// String is the report, with a table for a page in Markdown.
func (r *leadersReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d candidates (processes), %d redis-servers, TTL %v, %s/%s, %d CPUs, load average %s before and %s after\n\n",
		replicas, nodes, r.ttl, runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), r.before, r.after)
	b.WriteString("| the leader | rounds | min | median | p99 | max | aim for p99 |\n|---|---|---|---|---|---|---|\n")
	for _, kind := range faults {
		sorted := slices.Sorted(slices.Values(r.takeovers[kind]))
		p99, aim := quantile(sorted, 0.99), r.aims()[kind]
		verdict := "kept"
		if p99 > aim {
			verdict = "missed"
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s | %s: %s |\n", kind, len(sorted),
			milliseconds(quantile(sorted, 0)), milliseconds(quantile(sorted, 0.5)), milliseconds(p99), milliseconds(quantile(sorted, 1)), milliseconds(aim), verdict)
	}
	fmt.Fprintf(&b, "\n%d terms, %d of which ended without a fault of ours; %d stale writes of paused leaders refused; %d writes admitted\n", r.terms, r.unasked, r.refused, r.writes)
	if len(r.violations) == 0 {
		b.WriteString("violations: none\n")
	}
	for _, v := range r.violations {
		b.WriteString("VIOLATION: " + v + "\n")
	}
	return b.String()
}

func milliseconds(d time.Duration) string {
	if d < 100*time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}
