package main

import (
	"context"
	"fmt"
	"time"
)

const (
	// A process is stopped for so many TTLs: longer than its leases last, so that others go on with
	// what it holds.
	briefest = 1.3
	lengthy  = 2.2

	// The pause between two faults.
	soonest = 100 * time.Millisecond
	latest  = 500 * time.Millisecond

	// atOnce is how many processes are stopped at the same time, of eight.
	atOnce = 3

	// glance is how often the store is looked at.
	glance = 100 * time.Millisecond
)

// rage stops and kills processes, and looks at the store all the time, until the run is over.
func (s *storm) rage(ctx context.Context) error {
	begun := time.Now()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.counts.Took = time.Since(begun)
	}()
	fault := time.NewTimer(0)
	defer fault.Stop()
	look := time.NewTicker(glance)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-fault.C:
			if err := s.strike(ctx); err != nil {
				return err
			}
			fault.Reset(soonest + time.Duration(s.random.Int64N(int64(latest-soonest))))
		case <-look.C:
			shelves, err := s.store.look(ctx)
			if err != nil {
				return fmt.Errorf("look at the store: %w", err)
			}
			if err := balanced(s.initial, shelves); err != nil && len(s.wrong) < enough {
				s.wrong = append(s.wrong, fmt.Sprintf("after %v, %v", time.Since(begun).Round(time.Millisecond), err))
			}
			if s.over(time.Since(begun)) {
				return nil
			}
		}
	}
}

// over tells whether a run has gone on for long enough. One that has shown nothing yet goes on.
func (s *storm) over(took time.Duration) bool {
	if s.first {
		return len(s.wrong) > 0 || took >= s.patience
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.counts
	r.Refused = len(s.refused)
	return took >= s.duration && (!s.on.Gated || r.shown() || took >= s.duration+s.patience)
}

// strike stops a process, or kills one, by preference in the middle of a sale.
func (s *storm) strike(ctx context.Context) error {
	kill := s.random.IntN(4) == 0
	length := time.Duration((briefest + (lengthy-briefest)*s.random.Float64()) * float64(s.ttl))
	i, ok := s.victim(ctx)
	if !ok {
		return nil
	}
	p := s.posts[i]
	if kill {
		p.process.Kill()
		s.mu.Lock()
		s.counts.Kills++
		s.mu.Unlock()
		return s.launch(i)
	}
	p.process.Stop()
	s.mu.Lock()
	s.counts.Stops++
	p.stopped = true
	s.mu.Unlock()
	p.busy.Go(func() {
		pause(ctx, length)
		s.mu.Lock()
		// What it told before it was stopped has long been heard.
		if len(p.inside) > 0 {
			s.counts.Caught++
		}
		s.mu.Unlock()
		p.process.Cont()
		s.mu.Lock()
		defer s.mu.Unlock()
		p.stopped = false
	})
	return nil
}

// victim chooses a process that is running. It waits a little for one that is in the middle of a sale.
func (s *storm) victim(ctx context.Context) (i int, ok bool) {
	for range 50 {
		s.mu.Lock()
		var running, selling []int
		for i, p := range s.posts {
			if !p.stopped {
				running = append(running, i)
				if len(p.inside) > 0 {
					selling = append(selling, i)
				}
			}
		}
		s.mu.Unlock()
		switch {
		case len(s.posts)-len(running) >= atOnce:
			return 0, false
		case len(selling) > 0:
			return selling[s.random.IntN(len(selling))], true
		case !pause(ctx, 2*time.Millisecond):
			return 0, false
		}
		i, ok = running[s.random.IntN(len(running))], true
	}
	return i, ok
}
