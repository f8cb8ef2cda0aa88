package scheduler

import (
	"context"
	"slices"
	"sync"
)

const (
	// maxAtNodes is how many jobs of a Scheduler are at the nodes at the same time, to look at their
	// registers and to claim ticks: as many as fill the pipelines. More would only wait there, behind
	// each other, with leases that run out and timeouts that hit.
	maxAtNodes = 256
	// fewClaims is how many claims there still are when those who only look are let in: when this
	// replica is nearly through with its share, the others are with theirs.
	fewClaims = maxAtNodes / 16
	// lookers let in one out of so many places at least, however many claims there are.
	lookers = 32
)

// A line is what jobs wait in for the nodes, first in, first out: those that have something to claim
// of which this replica goes first, and then the others.
type line struct {
	mu       sync.Mutex
	inside   int
	claiming int // of those inside
	left     int // how many ever were inside
	claims   []chan struct{}
	others   []chan struct{}
}

// enter waits for a place. The error is the cause of the context's end.
func (l *line) enter(ctx context.Context, claim bool) error {
	ready := make(chan struct{})
	row := &l.others
	if claim {
		row = &l.claims
	}
	l.mu.Lock()
	*row = append(*row, ready)
	l.admit()
	l.mu.Unlock()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	i := slices.Index(*row, ready)
	if i >= 0 {
		*row = slices.Delete(*row, i, i+1)
	}
	l.mu.Unlock()
	if i < 0 { // the place came at the same moment
		l.leave(claim)
	}
	return context.Cause(ctx)
}

// leave gives a place back.
func (l *line) leave(claim bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inside--
	if claim {
		l.claiming--
	}
	if l.left++; l.left%lookers == 0 && len(l.others) > 0 {
		l.next(&l.others)
	}
	l.admit()
}

// admit lets in whoever may be. Guarded by mu, as next is.
func (l *line) admit() {
	for l.inside < maxAtNodes {
		switch {
		case len(l.claims) > 0:
			l.claiming++
			l.next(&l.claims)
		case len(l.others) > 0 && l.claiming <= fewClaims:
			l.next(&l.others)
		default:
			return
		}
	}
}

func (l *line) next(row *[]chan struct{}) {
	l.inside++
	close((*row)[0])
	(*row)[0] = nil
	*row = (*row)[1:]
}
