package redlock

import (
	"context"
	"sync"
	"time"
)

// examineEvery is how often nodes are asked for their clocks while somebody reads the metrics. A wall clock
// that NTP has lost drifts by some milliseconds in an hour; a step is seen soon enough by then.
const examineEvery = time.Minute

// An exam asks all nodes who they are, in the background, because a node that is never dialled again is
// not asked otherwise.
type exam struct {
	mu     sync.Mutex
	next   time.Duration // by the fleet's clock
	closed bool
	asking sync.WaitGroup
}

// examine begins an exam, unless there was one lately. It asks no node that is suspect: its lane does.
func (f *fleet) examine() {
	if !f.met.Load() {
		return // the first use asks
	}
	now := f.clock.Elapsed()
	f.exam.mu.Lock()
	defer f.exam.mu.Unlock()
	if f.exam.closed || now < f.exam.next {
		return
	}
	f.exam.next = now + examineEvery
	for _, l := range f.lanes {
		if l.cluster != nil {
			for _, s := range l.cluster.all() {
				f.examineOne(s.lane)
			}
			continue
		}
		f.examineOne(l)
	}
}

// examineOne is guarded by the exam's mu.
func (f *fleet) examineOne(l *lane) {
	if !l.isUp() {
		return
	}
	f.exam.asking.Go(func() {
		ctx, cancel := context.WithTimeout(l.ctx, max(f.nodeTimeout, connectTimeout))
		defer cancel()
		dials := l.node.dials.Load()
		// A node that does not answer is found out by the steps on its lane.
		if info, err := readInfo(ctx, l.node.client); err == nil && info.took < f.nodeTimeout {
			l.node.learn(dials, info)
		}
	})
}

// end lets no exam begin any more.
func (e *exam) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
}
