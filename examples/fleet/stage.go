package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/quorate/quorate/redlock/redlocktest"
)

// A stage is the run as the parent sees it: the nodes, the replicas, and what they tell.
type stage struct {
	cfg   config
	out   io.Writer
	began time.Time
	nodes *redlocktest.Fleet // nil where they are somebody else's
	shop  *shop

	mu       sync.Mutex
	children []*child
	ready    time.Time // the first replica was
	terms    terms
	sold     int
	refused  int
	ears     map[chan event]func(event) bool
}

// say prints a line.
func (s *stage) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sayLocked(format, args...)
}

func (s *stage) sayLocked(format string, args ...any) {
	_, _ = fmt.Fprintf(s.out, "%5.1fs  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// hear takes note of what a replica tells, and prints what is worth it.
func (s *stage) hear(e event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.Kind {
	case ready:
		if s.ready.IsZero() {
			s.ready = e.At
		}
	case began, trusted, ended:
		s.terms.note(e)
		switch e.Kind {
		case began:
			s.sayLocked("replica %d leads term %d", e.Replica, e.Token)
		case ended:
			s.sayLocked("replica %d leads no more: %s", e.Replica, e.Text)
		}
	case ran:
		s.sayLocked("replica %d runs tick %s", e.Replica, clock(e.Tick))
	case sold:
		s.sold++
		if all := products * unitsEach; s.sold*4/all > (s.sold-1)*4/all {
			s.sayLocked("%d of %d units are sold", s.sold, all)
		}
	case refused:
		s.refused++
		s.sayLocked("replica %d is refused the sale of unit %d of %s: stale token %d", e.Replica, e.Unit, e.Product, e.Token)
	case inside:
		s.sayLocked("replica %d is in the middle of selling unit %d of %s, token %d", e.Replica, e.Unit, e.Product, e.Token)
	case trouble:
		s.sayLocked("replica %d has trouble with %s: %s", e.Replica, e.Product, e.Text)
	}
	for ear, wants := range s.ears {
		if wants(e) {
			delete(s.ears, ear)
			ear <- e
		}
	}
}

// listen gives the first event from now on that is wanted.
func (s *stage) listen(wants func(event) bool) <-chan event {
	s.mu.Lock()
	defer s.mu.Unlock()
	ear := make(chan event, 1)
	s.ears[ear] = wants
	return ear
}

// start adds a replica.
func (s *stage) start() (*child, error) {
	s.mu.Lock()
	cfg := s.cfg
	cfg.Replica = len(s.children) + 1
	s.mu.Unlock()
	c, err := startChild(cfg, s.hear)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.children = append(s.children, c)
	s.sayLocked("replica %d is started, process %d", c.number, c.cmd.Process.Pid)
	return c, nil
}

// leader is the replica that leads, waited for where nobody does, or nil when ctx ends first.
func (s *stage) leader(ctx context.Context) *child {
	next := s.listen(func(e event) bool { return e.Kind == began })
	s.mu.Lock()
	if number, ok := s.terms.leader(); ok && s.children[number-1].isRunning() {
		defer s.mu.Unlock()
		return s.children[number-1]
	}
	s.mu.Unlock()
	select {
	case e := <-next:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.children[e.Replica-1]
	case <-ctx.Done():
		return nil
	}
}

// running are the replicas that have not been ended.
func (s *stage) running() []*child {
	s.mu.Lock()
	defer s.mu.Unlock()
	var running []*child
	for _, c := range s.children {
		if !c.isExpected() {
			running = append(running, c)
		}
	}
	return running
}
