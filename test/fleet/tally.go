package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/scheduler"
)

// tally is what became of the ticks of one job.
type tally struct {
	contender string
	job       string
	ticks     int
	runs      int // that were begun
	completed int // ticks of which a run has ended
	doubled   int // ticks that were begun twice, or, of a job at least once, completed twice
	repeated  int // runs of a job at least once after the first of its tick
	lost      int // ticks that were never begun, or, of a job at least once, completed
	claimed   int // ticks of a job at most once whose replica was killed after the claim and before the run
	passed    int // ticks that the policy for overlaps left out: one waits for a run, and the machine made that last for two
	kills     int // of the contender's replicas
	restarts  int
	found     []string
}

// tallies are those of the contender's jobs.
func (w *crew) tallies(ctx context.Context) ([]tally, error) {
	var all []tally
	for _, job := range w.jobs() {
		var order []completion
		if w.contender == "quorate" {
			var err error
			if order, err = w.order(ctx, job); err != nil {
				return nil, err
			}
		}
		t := w.tally(job, w.journal.since(0), order)
		t.kills, t.restarts = w.kills, w.restarts
		all = append(all, t)
	}
	return all, nil
}

// completion is a run that the gate has let in as completed.
type completion struct{ tick, token int64 }

// order is the order in which runs were completed.
func (w *crew) order(ctx context.Context, job string) ([]completion, error) {
	entries, err := w.store.LRange(ctx, orderKey(job), 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("read which runs of %s were completed: %w", job, err)
	}
	var all []completion
	for _, e := range entries {
		tick, token, _ := strings.Cut(e, " ")
		var c completion
		if c.tick, err = strconv.ParseInt(tick, 10, 64); err == nil {
			c.token, err = strconv.ParseInt(token, 10, 64)
		}
		if err != nil {
			return nil, fmt.Errorf("read which runs of %s were completed: %w", job, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// tally counts. Where there is a gate, what it has let in is what was completed: a process may be
// killed before it can say so.
func (w *crew) tally(job string, entries []told, order []completion) tally {
	t := tally{contender: w.contender, job: job, ticks: w.ticks}
	begun, done := map[int64]int{}, map[int64]int{}
	died, reported, overlapped := map[int64]bool{}, map[int64]bool{}, map[int64]bool{}
	began := map[int64]int64{} // runs that go on, when they began, by their tokens
	slow := false              // one lasted for as long as from one tick to the next
	for _, e := range entries {
		if e.by.config.Role == w.contender && e.Job == job {
			switch e.Kind {
			case started:
				began[e.Token] = e.At
			case completed, again, cut:
				slow = slow || time.Duration(e.At-began[e.Token]) >= time.Second
			}
		}
		switch {
		case !w.counts(e, job):
		case e.Kind == started:
			begun[e.Tick]++
			t.runs++
			died[e.Tick] = died[e.Tick] || e.by.Killed() != 0
		case e.Kind == interrupted:
			reported[e.Tick] = true
		case e.Kind == missed && e.Err == string(scheduler.Overlap):
			overlapped[e.Tick] = true
		case e.Kind == completed && w.contender != "quorate":
			done[e.Tick]++
		case e.Kind == again && !died[e.Tick]: // who dies may have been about to say that it was completed
			done[e.Tick]++
		}
	}
	for i, c := range order {
		if i > 0 && c.token < order[i-1].token {
			t.found = append(t.found, fmt.Sprintf("%s: the gate let token %d in after %d", job, c.token, order[i-1].token))
		}
		if c.tick >= w.first && c.tick <= w.last {
			done[c.tick]++
		}
	}
	t.completed = len(done)
	counted := begun
	if job == atLeastOnce {
		counted = done
		t.repeated = t.runs - len(begun)
	}
	for tick := w.first; tick <= w.last; tick++ {
		switch n := counted[tick]; {
		case n == 0 && job == atMostOnce && reported[tick]:
			t.claimed++ // the claim is what is made at most once
		case n == 0 && overlapped[tick] && slow:
			t.passed++
		case n == 0:
			t.lost++
			t.found = append(t.found, fmt.Sprintf("%s: tick %d is lost (run %d times, completed %d times)", job, tick-w.first, begun[tick], done[tick]))
		case n > 1:
			t.doubled++
			t.found = append(t.found, fmt.Sprintf("%s: tick %d is doubled (run %d times, completed %d times)", job, tick-w.first, begun[tick], done[tick]))
		}
	}
	slices.Sort(t.found)
	return t
}
