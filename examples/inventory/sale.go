package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quorate/quorate/fencing"
)

// product is what is sold.
const product = "sku-42"

// Sizes of a sale.
type sizes struct {
	units, orders, buyers, replicas int
	freeze                          time.Duration // of a replica in the middle; 0: none
}

// A sale is a flash sale in one way, as the parent sees it.
type sale struct {
	cfg   config
	sizes sizes
	db    *sql.DB
	store *store
	crowd *crowd

	mu        sync.Mutex
	children  []*child
	dismissed bool
	addrs     map[int]string // of those that are ready
	isReady   chan struct{}  // closed when all are
	victim    int            // the first replica that was in the middle of a sale
	caught    chan event     // has room; it is there
	ended     chan event     // has room; how that sale ended
	counts    []event        // of those that have ended
}

func newSale(cfg config, sizes sizes, db *sql.DB, w way) (*sale, error) {
	store, err := newStore(db, cfg.Database.Dialect)
	if err != nil {
		return nil, err
	}
	cfg.Way = w
	if sizes.freeze > 0 {
		// Some replica gets there, however the sales are shared out.
		cfg.FreezeAt = max(1, sizes.units/4/sizes.replicas)
	}
	return &sale{
		cfg: cfg, sizes: sizes, db: db, store: store,
		addrs: map[int]string{}, isReady: make(chan struct{}), caught: make(chan event, 1), ended: make(chan event, 1),
	}, nil
}

// hold holds the sale and counts. The error is of what could not even be started, or counted.
func (s *sale) hold(ctx context.Context) (r *result, err error) {
	if err := s.store.create(ctx, product, s.sizes.units); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.dismiss()) }()
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	r = &result{way: s.cfg.Way, sizes: s.sizes, began: time.Now()}

	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	var watchers sync.WaitGroup
	var waits lockWaits
	var failed [2]error
	if s.cfg.Database.Dialect == fencing.PostgreSQL {
		watchers.Go(func() { failed[0] = sampleWaits(watching, s.db, s.cfg.Database.Schema, &waits) })
	}
	if s.sizes.freeze > 0 {
		watchers.Go(func() { failed[1] = s.freeze(watching, r) })
	}
	r.answers = s.crowd.buy(ctx)
	r.took = time.Since(r.began)
	stopWatching()
	watchers.Wait()
	if err := errors.Join(failed[:]...); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := s.dismiss(); err != nil {
		return nil, err
	}
	return r, s.count(ctx, r, &waits)
}

// open starts the replicas, and waits until they serve.
func (s *sale) open(ctx context.Context) error {
	ended := make(chan *child, s.sizes.replicas)
	for i := range s.sizes.replicas {
		cfg := s.cfg
		cfg.Replica = i + 1
		c, err := startChild(cfg, s.hear)
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.children = append(s.children, c)
		s.mu.Unlock()
		go func() {
			<-c.ended
			ended <- c
		}()
	}
	select {
	case <-s.isReady:
	case c := <-ended:
		return fmt.Errorf("replica %d ended early: %v", c.number, c.cmd.ProcessState)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.crowd = &crowd{buyers: s.sizes.buyers, orders: s.sizes.orders}
	for i := range s.children {
		s.crowd.replicas = append(s.crowd.replicas, s.addrs[i+1])
	}
	return nil
}

// hear takes note of what a replica tells.
func (s *sale) hear(e event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.Kind {
	case ready:
		s.addrs[e.Replica] = e.Addr
		if len(s.addrs) == s.sizes.replicas {
			close(s.isReady)
		}
	case inside:
		if s.victim == 0 {
			s.victim = e.Replica
			s.caught <- e
		} else {
			_ = s.children[e.Replica-1].goOn() // has ended if this fails, which is told of then
		}
	case landed, refused, failed:
		if e.Replica == s.victim {
			s.ended <- e
		}
	case done:
		s.counts = append(s.counts, e)
	}
}

// dismiss ends the replicas; a second time it does nothing.
func (s *sale) dismiss() (err error) {
	s.mu.Lock()
	dismissed, children := s.dismissed, s.children
	s.dismissed = true
	s.mu.Unlock()
	if dismissed {
		return nil
	}
	for _, c := range children {
		c.tell()
	}
	for _, c := range children {
		err = errors.Join(err, c.await(2*patience))
	}
	return err
}

// count reads what the sale has left in the database, which is what is judged.
func (s *sale) count(ctx context.Context, r *result, waits *lockWaits) (err error) {
	if r.left, err = s.store.left(ctx, s.db, product); err != nil {
		return err
	}
	if r.ordered, err = s.store.ordered(ctx, product); err != nil {
		return err
	}
	_, r.mostWaiting = waits.sum()
	r.meanWaiting = waits.mean()
	for _, e := range s.counts {
		r.stale += e.Stale
		r.mostWaiting += e.MostWait
		r.meanWaiting += e.Waited.Seconds() / r.took.Seconds()
	}
	return nil
}
