package crontab

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/robfig/cron/v3"
)

// wrapped is a schedule of someone else's.
type wrapped struct {
	schedule cron.Schedule
	loc      *time.Location
	fault    atomic.Pointer[error]
}

// Wrap makes a schedule of the caller's own safe to use. It is asked in loc, and its ticks are
// rounded up to whole milliseconds. Where it panics, or gives a time that is not after the one it
// was asked for, it has no more ticks, and Fault tells why.
//
// The schedule has to be a set of instants: asked for the first after different times, it must
// give consistent answers, and the same on all replicas. (cron.Every, which counts from the time
// it is asked, is not.)
func Wrap(s cron.Schedule, loc *time.Location) Schedule {
	return &wrapped{schedule: s, loc: loc}
}

// Fault is the first fault of a schedule that was given to Wrap, or nil.
func Fault(s Schedule) error {
	if w, ok := s.(*wrapped); ok {
		if err := w.fault.Load(); err != nil {
			return *err
		}
	}
	return nil
}

func (w *wrapped) location() *time.Location { return w.loc }

func (w *wrapped) Next(t time.Time) (next time.Time) {
	t, ok := clamp(t.Round(0))
	if !ok {
		return time.Time{}
	}
	defer func() {
		if v := recover(); v != nil {
			w.fail(fmt.Errorf("the schedule panicked: %v", v))
			next = time.Time{}
		}
	}()
	// The last tick before t may be rounded up to one after t, so it is asked for, too.
	whole := time.UnixMilli(t.UnixMilli()).In(w.loc)
	next = w.schedule.Next(whole)
	switch {
	case next.IsZero() || !next.Before(latest):
		return time.Time{}
	case !next.After(whole):
		w.fail(fmt.Errorf("the schedule gave %v for the first time after %v", next, whole))
		return time.Time{}
	}
	return ceil(next.Round(0)).In(w.loc)
}

func (w *wrapped) fail(err error) { w.fault.CompareAndSwap(nil, &err) }
