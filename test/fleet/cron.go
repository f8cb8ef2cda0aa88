package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/quorate/quorate/test/rig"
)

// cronConfig is what a run with crontabs is asked for.
type cronConfig struct {
	ticks      int
	killEvery  int // ticks from one kill to the next
	ttl        time.Duration
	skew       time.Duration // from the wall clock of one replica to that of the next
	lasts      time.Duration // a run
	contenders []string
	log        func(string)
	file       string // a file for all events, or ""
}

func cronDefaults() cronConfig {
	return cronConfig{
		ticks: 200, killEvery: 10, ttl: 2 * time.Second, skew: 2 * time.Second, lasts: 200 * time.Millisecond,
		contenders: []string{"quorate", "gocron", "gocron-quorate"}, log: func(string) {},
	}
}

// The jobs.
const (
	atMostOnce  = "once"
	atLeastOnce = "least"
)

// patience is how long after the last tick what is still missing may come: a replica that was
// killed holds its lease for a TTL, and the next one catches up from there, on a machine that may
// be slow. Of the other contenders, which make up for nothing, less is waited for.
func (w *crew) patience() time.Duration {
	if w.contender == "quorate" {
		return 30 * w.ttl
	}
	return 10 * w.ttl
}

// crons has all contenders run at the same time, and says what there was.
func crons(ctx context.Context, c cronConfig) (r *cronReport, err error) {
	s, err := newStage(c.log, c.file)
	if err != nil {
		return nil, err
	}
	defer func() { s.strike(&err, recover()) }()
	s.set()
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer func() { cancel(); all.Wait() }() // where one cannot be started, the others end
	r = &cronReport{cronConfig: c, tallies: make([][]tally, len(c.contenders))}
	errs := make([]error, len(c.contenders))
	for i, contender := range c.contenders {
		w := &crew{stage: s, cronConfig: c, contender: contender}
		if err := w.cast(ctx); err != nil { // one after the other, so that each starts at a time of its own
			return nil, fmt.Errorf("start the replicas of %s: %w", contender, err)
		}
		all.Go(func() { r.tallies[i], errs[i] = w.perform(ctx) })
	}
	all.Wait()
	return r, errors.Join(errs...)
}

// crew is the replicas of one contender.
type crew struct {
	*stage
	cronConfig
	contender   string
	places      []*place
	first, last int64 // the ticks that count
	kills       int
	restarts    int
}

// jobs are what the contender runs.
func (w *crew) jobs() []string {
	if w.contender == "quorate" {
		return []string{atMostOnce, atLeastOnce}
	}
	return []string{atMostOnce}
}

// cast starts the replicas, one after the other, at no particular fraction of a second.
func (w *crew) cast(ctx context.Context) error {
	for i := range replicas {
		p := w.place(clientConfig{
			Role: w.contender, Replica: i, TTL: w.ttl, Lasts: w.lasts, Skew: time.Duration(i) * w.skew,
		})
		w.places = append(w.places, p)
		at, err := w.relaunch(ctx, p)
		if err != nil {
			return err
		}
		// No tick counts that one of them may take to be before its start.
		w.first = max(w.first, at+2)
		if !pause(ctx, 370*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	w.last = w.first + int64(w.ticks) - 1
	return nil
}

// relaunch starts the next process of a place, and waits until it works. It returns the second by
// its clock.
func (w *crew) relaunch(ctx context.Context, p *place) (second int64, err error) {
	if err := w.launch(p); err != nil {
		return 0, err
	}
	err = w.await(ctx, p.config.identity()+" to work", time.Minute, func() bool {
		e, ok := w.journal.first(0, func(t told) bool { return t.by == p.process && t.Kind == ready })
		second = e.Tick
		return ok
	})
	return second, err
}

// perform is the run: kills at their ticks, the restart of all in the middle, and then whatever
// the contender makes up for.
func (w *crew) perform(ctx context.Context) ([]tally, error) {
	w.log(fmt.Sprintf("%s: ticks %d to %d", w.contender, w.first, w.last))
	middle := w.first + int64(w.ticks)/2
	for at := w.first + int64(w.killEvery); at < w.last; at += int64(w.killEvery) {
		if middle != 0 && at >= middle {
			if err := w.reach(ctx, middle); err != nil {
				return nil, err
			}
			middle = 0
			if err := w.deploy(ctx); err != nil {
				return nil, fmt.Errorf("restart the replicas of %s: %w", w.contender, err)
			}
		}
		if err := w.strikeDown(ctx, at); err != nil {
			return nil, fmt.Errorf("kill a replica of %s: %w", w.contender, err)
		}
	}
	if err := w.reach(ctx, w.last+1); err != nil {
		return nil, err
	}
	// What is missing then is lost, which the tallies say.
	_ = w.await(ctx, "all ticks", w.patience(), w.complete)
	for _, p := range w.places {
		if !p.process.End(time.Minute) {
			return nil, fmt.Errorf("%s did not end within a minute, or not well; %s", p.config.identity(), w.complaints())
		}
	}
	return w.tallies(ctx)
}

// reach waits until the slowest clock, which is right, has come to a tick.
func (w *crew) reach(ctx context.Context, tick int64) error {
	for time.Now().Unix() < tick {
		if !pause(ctx, 20*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// strikeDown kills a replica in a run, that of the next tick to begin from the given one on, and starts
// it again. The jobs take turns.
func (w *crew) strikeDown(ctx context.Context, tick int64) error {
	job := w.jobs()[w.kills%len(w.jobs())]
	n := w.journal.len()
	var victim told
	err := w.await(ctx, fmt.Sprintf("a run of %s to begin", job), time.Duration(w.killEvery)*time.Second+w.patience(), func() (ok bool) {
		victim, ok = w.journal.first(n, func(t told) bool {
			return t.Kind == started && t.by.config.Role == w.contender && t.Job == job && t.Tick >= tick
		})
		return ok
	})
	if err != nil {
		return err
	}
	p := victim.by.place
	if !pause(ctx, w.lasts/10+rand.N(w.lasts/2)) {
		return context.Cause(ctx)
	}
	p.process.Kill()
	w.kills++
	_, err = w.relaunch(ctx, p)
	return err
}

// deploy restarts all replicas, one after the other: each drains and ends before its successor
// starts.
func (w *crew) deploy(ctx context.Context) error {
	for _, p := range w.places {
		p.process.Terminate()
		if !p.process.Await(time.Minute) {
			return fmt.Errorf("%s did not end within a minute of SIGTERM, or not well; %s", p.config.identity(), w.complaints())
		}
		if _, err := w.relaunch(ctx, p); err != nil {
			return err
		}
		w.restarts++
	}
	return nil
}

// complete tells whether every tick has been started, or completed where that is to be.
func (w *crew) complete() bool {
	for _, job := range w.jobs() {
		what := started
		if job == atLeastOnce {
			what = completed
		}
		seen := map[int64]bool{}
		for _, t := range w.journal.since(0) {
			if t.Kind == what && w.counts(t, job) {
				seen[t.Tick] = true
			}
		}
		if len(seen) < w.ticks {
			return false
		}
	}
	// A run that was begun is still to end.
	return time.Now().Unix() > w.last+2
}

// counts tells whether an event is about a tick that counts.
func (w *crew) counts(t told, job string) bool {
	return t.by.config.Role == w.contender && t.Job == job && t.Tick >= w.first && t.Tick <= w.last
}

// wall is the second by a replica's wall clock to which it is nearest.
func wall(c *rig.Clock) int64 { return c.Now().Round(time.Second).Unix() }
