package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/quorate/quorate/redlock/redlocktest"
)

// patience is what replicas have to end in.
const patience = 10 * time.Second

// play runs the whole thing. The error is of what could not even be started, or counted.
func play(ctx context.Context, cfg config, length time.Duration, out io.Writer) (*verdict, error) {
	s := &stage{cfg: cfg, out: out, began: time.Now(), ears: map[chan event]func(event) bool{}}
	closeNodes, err := s.setUp(ctx)
	if err != nil {
		return nil, err
	}
	defer closeNodes()

	var broken []string
	err = s.perform(ctx, length)
	stopped := time.Now()
	for _, e := range s.dismiss() {
		broken = append(broken, e.Error())
	}
	if err != nil {
		return nil, err
	}
	// The run is counted also where it was cut short.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	units, runs, err := s.shop.count(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.shop.clear(ctx); err != nil {
		return nil, fmt.Errorf("clear the store: %w", err)
	}
	return &verdict{
		terms: &s.terms, ticks: countTicks(runs, s.ready, stopped), units: units,
		refused: s.refused, broken: broken,
	}, nil
}

// setUp starts what is embedded, and fills the store.
func (s *stage) setUp(ctx context.Context) (_ func(), err error) {
	var embedded []*redlocktest.Fleet
	closeAll := func() {
		if s.shop != nil {
			s.shop.close()
		}
		for _, f := range embedded {
			_ = f.Close() // the process ends
		}
	}
	defer func() {
		if err != nil {
			closeAll()
		}
	}()
	embed := func(n int) (*redlocktest.Fleet, error) {
		f, err := redlocktest.New(n, redlocktest.WithTCP())
		if err == nil {
			embedded = append(embedded, f)
		}
		return f, err
	}
	if len(s.cfg.Nodes) == 0 {
		if s.nodes, err = embed(3); err != nil {
			return nil, err
		}
		s.cfg.Nodes = s.nodes.URLs()
	}
	if s.cfg.Store == "" {
		store, err := embed(1)
		if err != nil {
			return nil, err
		}
		s.cfg.Store = store.URLs()[0]
	}
	if s.shop, err = openShop(s.cfg); err != nil {
		return nil, err
	}
	if err = s.shop.open(ctx); err != nil {
		return nil, err
	}
	s.say("%d nodes and a store are up; leases have a TTL of %v", len(s.cfg.Nodes), s.cfg.TTL)
	if !s.cfg.Gate {
		s.say("there is no gate at the store: a late write will land")
	}
	return closeAll, nil
}

// perform starts the replicas and lets happen what is to happen, each in its part of the time.
func (s *stage) perform(ctx context.Context, length time.Duration) error {
	ctx, cancel := context.WithDeadline(ctx, s.began.Add(length))
	defer cancel()
	for range replicas {
		if _, err := s.start(); err != nil {
			return err
		}
	}
	for _, act := range []struct {
		percent int // of the length
		act     func(context.Context) error
	}{
		{25, s.killLeader},
		{45, s.freezeLeader},
		{75, s.restartNode},
	} {
		if !pause(ctx, time.Until(s.began.Add(length*time.Duration(act.percent)/100))) {
			break
		}
		if err := act.act(ctx); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

// dismiss ends all replicas that are still there.
func (s *stage) dismiss() (broken []error) {
	s.mu.Lock()
	all := s.children
	s.mu.Unlock()
	for _, c := range all {
		if !c.isExpected() && !c.isRunning() {
			broken = append(broken, fmt.Errorf("replica %d ended by itself: %v", c.number, c.cmd.ProcessState))
		}
	}
	if len(all) > 0 {
		s.say("the replicas are told to end")
	}
	running := s.running()
	for _, c := range running {
		c.tell()
	}
	for _, c := range running {
		if err := c.await(patience); err != nil {
			broken = append(broken, err)
		}
	}
	return broken
}
