package leader

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/quorate/quorate/internal/quorum"
	"github.com/quorate/quorate/redlock"
)

// Leader asks the nodes who leads. Any process that has a Locker for the fleet may ask, a
// candidate or not. By the time the answer is read, it may be out of date.
//
// A leader that crashed, or was cut off, is told until its TTL has ended; so is one that has been
// elected and whose function is about to be called. When the holder of the lease has not published its
// term yet, its function has not been called either; then the Term has the identity of the holder's
// Locker, from the lock itself, and nothing else: Number and Since are zero.
//
// Errors: ErrNoLeader when no quorum of nodes has one holder, or the holder's function has returned;
// redlock.ErrNoQuorum when too few nodes answer to know.
func (e *Elector) Leader(ctx context.Context) (Term, error) {
	status, err := e.locker.Inspect(ctx, e.name)
	if err != nil {
		return Term{}, fmt.Errorf("leader: who leads %q: %w", e.name, err)
	}
	r, ok := recordOf(status)
	switch {
	case status.Holder == "", ok && r.Phase == ended:
		return Term{}, fmt.Errorf("leader: who leads %q: %w", e.name, ErrNoLeader)
	case !ok:
		return Term{Name: e.name, Leader: identityOf(status.Holder)}, nil
	}
	return r.term(e.name), nil
}

// Watch yields who leads, now and at each change from then on: the term of a new leader, or, when
// nobody was seen to lead, a Term with the Name alone. Any process that has a Locker for the fleet may
// watch, a candidate or not, for as long as it likes:
//
//	for term := range elector.Watch(ctx) {
//		if term.Number == 0 {
//			continue // nobody
//		}
//		…
//	}
//
// It ends when ctx does, when the loop is left, or when the Locker is closed; ctx.Err tells which. There
// are no errors: while too few nodes answer to know, nothing is yielded. It asks the nodes when it is
// told that something is new, and twice in a TTL as a safety net; the loop's body delays it.
//
// What is yielded is so in this sense:
//
//   - Each term has really begun, with that number and leader: its function was called. By the time it is
//     yielded it may be over; a leader that crashed counts until its TTL has ended.
//   - The numbers strictly grow. A term that began and ended between two looks is missed.
//   - A vacancy is yielded only if one was seen: its leader, or another who won the lease later, has
//     put on record that the term is over, or its locks were gone at a quorum of nodes for a whole TTL.
//     A quick succession, and a crash where another follows at once, are yielded without one.
func (e *Elector) Watch(ctx context.Context) iter.Seq[Term] {
	return func(yield func(Term) bool) {
		w, err := e.locker.Watch(e.name)
		if err != nil {
			return // closed: New has checked the name
		}
		defer w.Close()
		s := sight{name: e.name, ttl: e.settings.ttl}
		for ctx.Err() == nil {
			pause := e.settings.ttl/2 + jitter(e.settings.ttl/16)
			status, err := e.locker.Inspect(ctx, e.name)
			switch {
			case err == nil:
				term, news := s.look(status, time.Now())
				if news && !yield(term) {
					return
				}
			case ctx.Err() != nil, errors.Is(err, redlock.ErrClosed):
				return
			default:
				pause = e.settings.ttl/8 + jitter(e.settings.ttl/16)
			}
			timer := time.NewTimer(pause)
			select {
			case <-w.C:
			case <-timer.C:
			case <-ctx.Done():
			case <-e.locker.Done():
			}
			timer.Stop()
		}
	}
}

// sight is what one who watches has seen. It makes an order of looks that have none: a look asks the
// nodes one by one, so that it may find a lock here and a newer record there, and the newest record
// may be on nodes that did not answer.
type sight struct {
	name string
	ttl  time.Duration

	any    bool          // something was yielded
	vacant bool          // and it was a vacancy
	last   redlock.Token // the last term that was yielded

	gone   time.Time // since when no quorum has had a lock; zero: one has
	goneOf redlock.Token
}

// look takes one look, and returns what is new in it.
func (s *sight) look(status redlock.Status, now time.Time) (_ Term, news bool) {
	r, err := parseRecord(status.State)
	if err != nil {
		r = record{}
	}
	holds := err == nil && status.Holder != "" && r.Lease == nonceOf(status.Holder)
	switch {
	case holds && r.Phase == leading:
		s.gone = time.Time{}
		// An older one is what nodes say that have missed something, or said it long ago.
		if r.Number <= s.last {
			return Term{}, false
		}
		s.any, s.vacant, s.last = true, false, r.Number
		return r.term(s.name), true
	case s.over(&r), s.vanished(status, &r, now):
		if s.any && s.vacant {
			return Term{}, false
		}
		s.any, s.vacant = true, true
		return Term{Name: s.name}, true
	}
	return Term{}, false
}

// over reports whether the newest record says that the last term is over and no other has begun, as far
// as is known.
func (s *sight) over(r *record) bool {
	switch {
	case r.Number < s.last, r.Number == 0:
		return false
	case r.Phase == elected:
		return r.Number > s.last
	}
	return r.Phase == ended
}

// vanished reports whether the locks of the newest term are gone, or another's are in their place. Once is not enough: who deletes them
// does not end a term, which its next extension puts right. Nodes that have restarted lately know
// nothing of locks.
func (s *sight) vanished(status redlock.Status, r *record, now time.Time) bool {
	free := 0
	for _, n := range status.Nodes {
		if n.Err == nil && n.Holder == "" && n.Quarantine == 0 {
			free++
		}
	}
	if status.Holder != "" && r.Lease == nonceOf(status.Holder) || status.Holder == "" && free < quorum.Size(len(status.Nodes)) {
		s.gone = time.Time{}
		return false
	}
	if status.Holder == "" && r.Number == 0 && s.last == 0 {
		return true // nobody has ever led
	}
	if s.gone.IsZero() || s.goneOf != r.Number {
		s.gone, s.goneOf = now, r.Number
	}
	return now.Sub(s.gone) >= s.ttl
}
