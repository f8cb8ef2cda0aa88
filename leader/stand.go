package leader

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/redlock"
)

// stand waits until this candidate has won the lease. It stands only while it is fit to lead.
func (e *Elector) stand(ctx context.Context) (*redlock.Lease, error) {
	for {
		if err := e.fitness.wait(ctx, e.locker.Done()); err != nil {
			return nil, err
		}
		standing, cancel := e.fitness.whileFit(ctx)
		var lease *redlock.Lease
		var err error
		if e.settings.priority == 0 {
			lease, err = e.locker.Acquire(standing, e.name, e.lease...)
		} else {
			lease, err = e.standLater(standing)
		}
		unfit := standing.Err() != nil && ctx.Err() == nil
		cancel()
		if err != nil && unfit && !errors.Is(err, redlock.ErrClosed) {
			continue
		}
		return lease, err
	}
}

// standLater is for candidates that do not come first: it looks for a vacancy, and asks for the
// lease only when that has lasted for as many steps as the others have ahead. It does not wait for the
// lease as those do, because whoever waits in redlock takes it at once.
func (e *Elector) standLater(ctx context.Context) (*redlock.Lease, error) {
	w, err := e.locker.Watch(e.name)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	var vacant time.Time // since when; zero: it is not
	var after redlock.Token
	for {
		status, err := e.locker.Inspect(ctx, e.name)
		pause := e.settings.ttl / 2
		r, _ := parseRecord(status.State)
		if r.Number != after { // a term has begun and ended meanwhile
			vacant, after = time.Time{}, r.Number
		}
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil && !mends(err):
			return nil, err
		case err != nil:
			vacant, pause = time.Time{}, e.settings.ttl/8
		case status.Holder != "":
			vacant = time.Time{}
			if status.TTL > 0 { // a lock that was set by hand may have none
				// Some more than a millisecond, for Redis' precision and lest candidates meet.
				pause = min(pause, status.TTL+time.Millisecond+jitter(5*time.Millisecond))
			}
			if r.Heir == e.identity { // it will be given back, and nobody tells
				pause = min(pause, e.settings.step()/8)
			}
		default:
			if vacant.IsZero() {
				vacant = time.Now()
			}
			pause = time.Until(vacant.Add(time.Duration(e.settings.priority) * e.settings.step()))
			pause = max(pause, e.yields(&r)) // at the same time, not one after the other
			if r.Heir == e.identity {
				pause = 0
			}
			if pause > 0 {
				break
			}
			lease, err := e.locker.TryAcquire(ctx, e.name, e.lease...)
			if err == nil || !mends(err) {
				return lease, err
			}
			pause = e.settings.step()/8 + jitter(e.settings.step()/8)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-w.C:
		case <-e.locker.Done():
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// mends reports whether an error of redlock may be gone at the next attempt.
func mends(err error) bool {
	var lost *redlock.QuorumError
	return errors.As(err, &lost) && !errors.Is(err, redlock.ErrClosed)
}

// jitter is a random time up to d.
func jitter(d time.Duration) time.Duration {
	return time.Duration(rand.Int64N(int64(d) + 1))
}

// yielding is how this candidate gives way to one whom a leader has named to follow.
type yielding struct {
	to    redlock.Token // the term whose leader has named one
	since time.Time
}

// scruple is for how long to stand back, and why, when a lease that was won is to be given back before
// a term has begun; or nil.
func (e *Elector) scruple(before *record) (pause time.Duration, reason error) {
	if err := e.fitness.unfit(); err != nil {
		return 0, err // stand waits
	}
	if left := e.yields(before); left > 0 {
		return left, errHeirGoesOver
	}
	return 0, nil
}

// yields is for how long this candidate still gives way to one whom the last leader has named. The
// record is of the last term that began, and nobody has been elected since.
func (e *Elector) yields(before *record) time.Duration {
	if before.Heir == "" || before.Heir == e.identity {
		return 0
	}
	if e.yielding.to != before.Number {
		e.yielding = yielding{to: before.Number, since: time.Now()}
	}
	// Counted from when this candidate first saw it, by its own clock, so that no other clock matters
	// and an heir who is dead delays nobody for longer.
	return max(0, e.settings.heirsTime()-time.Since(e.yielding.since))
}

// standBack gives a lease back that was won.
func (e *Elector) standBack(ctx context.Context, lease *redlock.Lease, reason error, pause time.Duration) {
	if err := lease.Release(context.WithoutCancel(ctx)); errors.Is(err, redlock.ErrNoQuorum) {
		e.settings.logger.WarnContext(ctx, "leader: release did not reach a quorum; the name is free again at the latest when its TTL ends", "name", e.name, "error", err)
	}
	e.settings.logger.InfoContext(ctx, "leader: stood back after winning the lease", "name", e.name, "reason", reason, "pause", pause)
	e.telemetry.stoodBack.Add(ctx, 1, e.telemetry.of(e.name))
	e.tell(Event{Kind: StoodBack, Err: reason})
}

// standAside waits until the newest record is such that there is no need to any more, or for as long as
// one stands aside at most.
func (e *Elector) standAside(ctx context.Context, most time.Duration, enough func(*record) bool) {
	if most <= 0 {
		return
	}
	w, err := e.locker.Watch(e.name)
	if err != nil {
		return // closed, as standing will find
	}
	defer w.Close()
	timer := time.NewTimer(most)
	defer timer.Stop()
	for {
		select {
		case <-w.C:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		case <-e.locker.Done():
			return
		}
		status, err := e.locker.Inspect(ctx, e.name)
		if r, bad := parseRecord(status.State); err == nil && bad == nil && enough(&r) {
			return
		}
	}
}
