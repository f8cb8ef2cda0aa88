package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
)

// batchTimeout is how long a span may wait to be printed.
const batchTimeout = 500 * time.Millisecond

// A printer is an exporter that writes each span as a line, in the order of their ends:
//
//	12:00:01.234 3f1c9a02 fencing.guard     4.1ms name=sku:2 token=1795283436324649 outcome=ok → 77ab01c4
//
// Behind the arrow are the spans that it is linked to: of a run or a guarded section, the acquisition
// of the lease under which it was done.
type printer struct {
	mu  sync.Mutex
	out io.Writer
}

// ExportSpans prints spans. It is called by the SDK.
func (p *printer) ExportSpans(_ context.Context, spans []trace.ReadOnlySpan) error {
	spans = slices.Clone(spans)
	slices.SortStableFunc(spans, func(a, b trace.ReadOnlySpan) int { return a.EndTime().Compare(b.EndTime()) })
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range spans {
		if _, err := fmt.Fprintln(p.out, line(s)); err != nil {
			return err
		}
	}
	return nil
}

// Shutdown does nothing: each span was written when it was exported.
func (p *printer) Shutdown(context.Context) error { return nil }

// say prints what is no span.
func (p *printer) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.out, "%s %s\n", time.Now().Format(clockFormat), fmt.Sprintf(format, args...)) // nobody reads it any more
}

const clockFormat = "15:04:05.000"

func line(s trace.ReadOnlySpan) string {
	var b strings.Builder
	lasted := s.EndTime().Sub(s.StartTime())
	fmt.Fprintf(&b, "%s %s %-16s %8s", s.EndTime().Format(clockFormat), short(s.SpanContext().SpanID().String()), s.Name(), shortTime(lasted))
	for _, a := range s.Attributes() {
		fmt.Fprintf(&b, " %s=%s", strings.TrimPrefix(string(a.Key), "quorate."), a.Value.String())
	}
	if s.Status().Code == codes.Error {
		fmt.Fprintf(&b, " error=%q", s.Status().Description)
	}
	for _, l := range s.Links() {
		fmt.Fprintf(&b, " → %s", short(l.SpanContext.SpanID().String()))
	}
	return b.String()
}

func short(id string) string { return id[:8] }

func shortTime(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}
