package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/test/rig"
)

// config is what one run is asked for.
type config struct {
	nodes     []string
	on        storeConfig
	processes int
	workers   int // in each process
	skus      int
	initial   int64 // units of each
	ttl       time.Duration
	duration  time.Duration
	patience  time.Duration // with a run that has not shown yet what it is to show
	first     bool          // ends at the first thing that is wrong
	seed      uint64
	dir       string // for what the processes say on their standard errors
}

func defaults() config {
	return config{
		processes: 8, workers: 64, skus: 4, initial: delivery, ttl: time.Second,
		duration: time.Minute, patience: time.Minute,
	}
}

// A result is what a run has come to.
type result struct {
	account
	Store    string
	Gated    bool
	Refused  int // stale writes
	ShutOut  int // leases that were too old before their sale began
	Unclear  int // writes that failed in another way
	Failed   int // sales that did not come to a write
	Stops    int
	Caught   int // stops in the middle of a sale
	Kills    int
	Took     time.Duration
	Messages []string // some of the errors
}

// sound tells whether nothing is wrong.
func (r result) sound() bool { return len(r.Wrong) == 0 }

// shown tells whether the run has come to what it is there for.
func (r result) shown() bool { return r.Refused > 0 && r.Stops > 0 && r.Kills > 0 }

// storm is one run.
type storm struct {
	config
	store  store
	random *rand.Rand
	posts  []*post
	wrong  []string // seen on the way

	mu      sync.Mutex // held for all below while processes run
	counts  result
	written []string // ids
	refused []event
	opened  int // processes, those that were started again included
}

// A post is the place of a process, in which one follows the other.
type post struct {
	process *rig.Process // changes only while nothing else is done to it
	starts  int
	busy    sync.WaitGroup  // stretches in which it is stopped
	stopped bool            // under the storm's mutex
	inside  map[string]bool // sales that have begun and are not over; under the storm's mutex
}

// run carries a run out.
func run(ctx context.Context, c config) (r result, err error) {
	st, err := c.on.open()
	if err != nil {
		return result{}, err
	}
	defer func() { _ = st.close() }()
	s := &storm{config: c, store: st, random: rand.New(rand.NewPCG(c.seed, 0))}
	s.counts = result{Store: c.on.Kind, Gated: c.on.Gated}
	if err := st.prepare(ctx, s.names(), c.initial); err != nil {
		return result{}, fmt.Errorf("prepare the store: %w", err)
	}
	defer func() {
		for _, p := range s.posts {
			p.busy.Wait()
			if p.process != nil {
				p.process.Kill()
			}
		}
	}()
	for range c.processes {
		s.posts = append(s.posts, &post{})
		if err := s.launch(len(s.posts) - 1); err != nil {
			return result{}, err
		}
	}
	if err := s.await(ctx, "all processes to sell", func() bool { return s.opened >= c.processes && len(s.written) > 0 }); err != nil {
		return result{}, err
	}
	if err := s.rage(ctx); err != nil {
		return result{}, err
	}
	return s.finish(ctx)
}

// names are the resources. The nodes may serve several runs.
func (s *storm) names() (names []string) {
	for i := range s.skus {
		names = append(names, fmt.Sprintf("%s-%s-%d", strings.ToLower(s.on.Kind), s.on.Run, i))
	}
	return names
}

// launch starts the process of a post, or the next one.
func (s *storm) launch(i int) error {
	p := s.posts[i]
	o := orders{
		Clerk: i, Start: p.starts, Nodes: s.nodes, Store: s.on, SKUs: s.names(),
		Workers: s.workers, TTL: s.ttl, Seed: s.seed,
	}
	p.starts++
	inside, process := map[string]bool{}, &rig.Process{}
	s.mu.Lock()
	p.inside = inside
	s.mu.Unlock()
	if err := process.Start(rig.Spec{Env: clerkEnv, Config: o, Log: s.log(i)}, func(line []byte) {
		var e event
		// The last line of a process that was killed may be cut off.
		if err := json.Unmarshal(line, &e); err == nil {
			s.hear(e, inside)
		}
	}); err != nil {
		return err
	}
	p.process = process
	return nil
}

func (s *storm) log(i int) string {
	return filepath.Join(s.dir, fmt.Sprintf("%s-%s-%d.log", s.on.Kind, s.on.Run, i))
}

// hear takes down what a process tells.
func (s *storm) hear(e event, inside map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.Kind {
	case opened:
		s.opened++
	case begun:
		inside[e.ID] = true
		return
	case written:
		s.written = append(s.written, e.ID)
	case refused:
		s.refused = append(s.refused, e)
	case unclear:
		s.counts.Unclear++
	case shutOut:
		s.counts.ShutOut++
	case overtaken, notBegun:
		s.counts.Failed++
	}
	delete(inside, e.ID)
	if e.Err != "" && e.Kind != refused && len(s.counts.Messages) < 20 {
		s.counts.Messages = append(s.counts.Messages, string(e.Kind)+": "+e.Err)
	}
}

// await waits until a condition holds, which is asked under the mutex.
func (s *storm) await(ctx context.Context, what string, condition func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		s.mu.Lock()
		ok := condition()
		s.mu.Unlock()
		if ok {
			return nil
		}
		if !pause(ctx, 10*time.Millisecond) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return fmt.Errorf("waited for %s: %w; %q; %s", what, context.Cause(ctx), s.counts.Messages, s.complaints())
		}
	}
}

// complaints are what the processes wrote to their standard errors.
func (s *storm) complaints() string {
	var all strings.Builder
	for i := range s.posts {
		if text, err := os.ReadFile(s.log(i)); err == nil {
			all.Write(text[max(0, len(text)-2000):])
		}
	}
	return all.String()
}

// finish has all processes end in peace, and audits.
func (s *storm) finish(ctx context.Context) (result, error) {
	ended := make([]bool, len(s.posts))
	var all sync.WaitGroup
	for i, p := range s.posts {
		all.Go(func() {
			p.busy.Wait()
			ended[i] = p.process.End(2 * writing)
		})
	}
	all.Wait()
	if slices.Contains(ended, false) {
		return result{}, fmt.Errorf("a process did not end well: %s", s.complaints())
	}
	b := book{initial: s.initial, written: s.written, refused: s.refused}
	var noShelves, noJournal error
	b.shelves, noShelves = s.store.look(ctx)
	b.entries, noJournal = s.store.journal(ctx)
	if err := errors.Join(noShelves, noJournal); err != nil {
		return result{}, fmt.Errorf("read the store: %w", err)
	}
	r := s.counts
	r.account = audit(b)
	r.Refused = len(s.refused)
	r.Wrong = append(r.Wrong, s.wrong...)
	return r, nil
}
