package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A load is a closed loop: each worker locks, unlocks, and does it again.
type load struct {
	workers int
	hot     bool          // all workers want one name; otherwise each has its own
	warm    time.Duration // before anything counts: connections, scripts, queues
	span    time.Duration // in which it counts
}

// An outcome is what a load has measured.
type outcome struct {
	ops   float64         // cycles per second
	locks []time.Duration // from asking for the lock to holding it, sorted
	trips []time.Duration // whole cycles, sorted
	// longest is the longest that anybody waited, also of those who still did at the end.
	longest time.Duration
	shares  []int // cycles, by worker
	refused int   // cycles that ended with an error
}

// failuresAllowed is of how many cycles one may fail: where something else takes the machine for a
// moment, a node may be late for once.
const failuresAllowed = 1000

// patience bounds everything that a contender may take to come to an end.
const patience = 30 * time.Second

// worker is one of a load.
type worker struct {
	locks, trips []time.Duration
	asked        atomic.Int64 // since when it waits, as time from the beginning; 0: it does not
	refused      int
	why          error
}

// run lets the load go on for its time.
func (l load) run(ctx context.Context, c contender) (*outcome, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	begun := time.Now()
	workers := make([]*worker, l.workers)
	var all sync.WaitGroup
	for i := range workers {
		w := &worker{}
		workers[i] = w
		name := "hot"
		if !l.hot {
			name = fmt.Sprintf("own-%d", i)
		}
		all.Go(func() {
			for ctx.Err() == nil {
				if err := w.cycle(ctx, c, name, begun, l); err != nil && ctx.Err() == nil {
					w.refused, w.why = w.refused+1, err
					pause(ctx, time.Millisecond)
				}
			}
		})
	}
	// No deadline in ctx: see rueidisPeer.
	end := time.NewTimer(l.warm + l.span)
	defer end.Stop()
	select {
	case <-end.C:
	case <-ctx.Done():
	}
	o := &outcome{}
	for _, w := range workers {
		if asked := w.asked.Load(); asked != 0 {
			o.longest = max(o.longest, l.warm+l.span-max(time.Duration(asked), l.warm))
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	stop()
	if err := within(patience, all.Wait); err != nil {
		return nil, fmt.Errorf("end the load: %w", err)
	}
	var why error
	for _, w := range workers {
		o.refused += w.refused
		why = cmp.Or(why, w.why)
		o.locks = append(o.locks, w.locks...)
		o.trips = append(o.trips, w.trips...)
		o.shares = append(o.shares, len(w.trips))
	}
	if why != nil && o.refused*failuresAllowed > len(o.trips) {
		return nil, fmt.Errorf("%d cycles failed and %d did not, one with: %w", o.refused, len(o.trips), why)
	}
	slices.Sort(o.locks)
	slices.Sort(o.trips)
	o.ops = float64(len(o.trips)) / l.span.Seconds()
	o.longest = max(o.longest, quantile(o.locks, 1))
	return o, nil
}

// cycle locks and unlocks, and counts it where it ends within the span.
func (w *worker) cycle(ctx context.Context, c contender, name string, begun time.Time, l load) error {
	asked := time.Since(begun)
	w.asked.Store(int64(max(asked, 1)))
	h, err := c.lock(ctx, name)
	w.asked.Store(0)
	held := time.Since(begun)
	if err != nil {
		return err
	}
	// Not with ctx: who is told to stop still unlocks.
	if err := h.unlock(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	done := time.Since(begun)
	if done > l.warm && done <= l.warm+l.span {
		w.locks = append(w.locks, held-asked)
		w.trips = append(w.trips, done-asked)
	}
	return nil
}

var errPatience = errors.New("it did not come to an end")

// within waits for f, for so long.
func within(d time.Duration, f func()) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return nil
	case <-time.After(d):
		return fmt.Errorf("%w within %v", errPatience, d)
	}
}

// pause waits, and tells whether ctx is still there.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
