package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/quorate/quorate/redlock"
)

const (
	// firstLook is how long a replica that was too late for the lease waits before it looks
	// whether the winner has recorded its claim, which takes that one round trip.
	firstLook = 10 * time.Millisecond
	lastLook  = time.Second
)

// A pursuit is one replica's way to what becomes of one tick: it claims the tick, or sees that
// another has, or that the time for it is over.
type pursuit struct {
	job      *job
	session  *session
	tick     time.Time
	deadline time.Time

	reason Reason // why it has not been claimed so far
	err    error
	// ghosts are the tokens of claims of ours that were not confirmed: they may be in the
	// register all the same, but no run followed them.
	ghosts []redlock.Token
}

// run ends when the tick is settled, its deadline has passed, or ctx ends.
func (p *pursuit) run(ctx context.Context) {
	p.reason = Late
	net := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(firstLook),
		backoff.WithMaxInterval(lastLook),
		backoff.WithMaxElapsedTime(0),
	)
	for first := true; ; first = false {
		if p.late() {
			p.miss(p.reason)
			return
		}
		if p.attempt(ctx, first) || ctx.Err() != nil {
			return
		}
		d := min(net.NextBackOff(), max(0, p.deadline.Sub(p.job.now())))
		if sleep(ctx, d) != nil {
			return
		}
	}
}

func (p *pursuit) late() bool { return !p.job.now().Before(p.deadline) }

// attempt does what can be done now and reports whether the tick is settled. All replicas ask
// for the lease when the tick comes due; those that do not get it only read from then on, until
// nobody holds it.
func (p *pursuit) attempt(ctx context.Context, first bool) bool {
	j := p.job
	own := j.current()
	if own != nil && own.skip(p.tick) {
		p.miss(Overlap)
		return true
	}
	if own != nil || !first {
		settled, free := p.inspect(ctx)
		// A function that goes on without its lease stops its own replica's next run only.
		if settled || !free || own != nil {
			return settled
		}
	}
	lease, err := j.scheduler.locker.TryAcquire(ctx, j.key(), j.lease...)
	if err != nil {
		p.obstacle(err)
		return false
	}
	return p.claim(ctx, lease)
}

// inspect reads the register, without a lease, and reports whether another has settled the
// tick, and if not, whether the lease is free.
func (p *pursuit) inspect(ctx context.Context) (settled, free bool) {
	j := p.job
	status, err := j.scheduler.locker.Inspect(ctx, j.key())
	if err != nil {
		p.obstacle(err)
		return false, false
	}
	reg, err := readRegister(status.State)
	if err != nil {
		p.reason, p.err = Unreadable, err
		return false, false
	}
	running := status.Holder != "" && reg.open()
	if reg.Settled.has(p.tick) && (running || !reg.open()) && !p.unbegun(&reg) {
		p.elsewhere(&reg)
		return true, false
	}
	if status.Holder != "" {
		p.reason, p.err = Held, fmt.Errorf("%w: held by %s", redlock.ErrTaken, status.Holder)
		if running {
			p.reason = Overlap
		}
	}
	return false, status.Holder == ""
}

// claim records under the lease that the tick is started, unless that is on record already, and
// begins the run. It reports whether the tick is settled, and keeps the lease only for a run.
func (p *pursuit) claim(ctx context.Context, lease *redlock.Lease) (settled bool) {
	j := p.job
	begun := false
	defer func() {
		if !begun {
			j.release(lease)
		}
	}()
	reg, err := readRegister(lease.State())
	if err != nil {
		p.reason, p.err = Unreadable, err
		return false
	}
	before := reg
	ours := p.unbegun(&reg)
	if reg.Settled.has(p.tick) && !ours {
		if reg.open() { // by nobody who holds the lease
			reg.Completed = reg.Started
			if lease.Save(context.WithoutCancel(ctx), reg.encode()) == nil {
				p.interrupted(&before)
			}
		}
		p.elsewhere(&before)
		return true
	}
	if ctx.Err() != nil || p.late() {
		return false
	}
	reg.Started, reg.Attempt, reg.By, reg.Token = p.tick.UnixMilli(), 1, j.scheduler.settings.identity, lease.Token()
	reg.Settled = reg.Settled.clone()
	reg.Settled.add(p.tick, j.schedule)
	if !p.confirm(ctx, lease, reg.encode()) {
		p.ghosts = append(p.ghosts, lease.Token())
		return false
	}
	if before.open() && !ours {
		p.interrupted(&before)
	}
	begun = true
	j.begin(p.session, lease, reg, p.tick)
	return true
}

// unbegun reports whether the tick is in the register by a claim of ours that was not confirmed,
// so that no run has begun.
func (p *pursuit) unbegun(reg *register) bool {
	return reg.Started == p.tick.UnixMilli() && slices.Contains(p.ghosts, reg.Token)
}

// confirm saves the register until a quorum has it. Without that the run must not begin: the
// next holder of the lease might not find the claim.
func (p *pursuit) confirm(ctx context.Context, lease *redlock.Lease, state []byte) bool {
	for {
		// A claim that is under way is not given up half: it might be on record.
		err := lease.Save(context.WithoutCancel(ctx), state)
		if err == nil {
			return true
		}
		p.obstacle(err)
		if lease.Err() != nil || errors.Is(err, redlock.ErrStaleToken) || p.late() || sleep(ctx, firstLook) != nil {
			return false
		}
	}
}

// obstacle takes note of why the tick could not be claimed now.
func (p *pursuit) obstacle(err error) {
	if errors.Is(err, redlock.ErrClosed) {
		p.session.stop(err)
		return
	}
	p.err = err
	switch {
	case errors.Is(err, redlock.ErrTaken):
		if p.reason != Overlap {
			p.reason = Held
		}
	default:
		p.reason = NoQuorum
	}
}

func (p *pursuit) event(outcome Outcome) Event {
	return Event{Job: p.job.name, Scheduled: p.tick, Outcome: outcome, Ticks: 1}
}

func (p *pursuit) miss(why Reason) {
	e := p.event(Missed)
	e.Reason, e.Err = why, p.err
	p.job.scheduler.report(e)
}

func (p *pursuit) elsewhere(reg *register) {
	e := p.event(Elsewhere)
	if reg.Started == p.tick.UnixMilli() {
		e.Replica, e.Token, e.Attempt = reg.By, reg.Token, reg.Attempt
	}
	p.job.scheduler.report(e)
}

// interrupted reports a run that was begun, and of which nobody can say whether it was
// completed.
func (p *pursuit) interrupted(reg *register) {
	p.job.scheduler.report(Event{
		Job: p.job.name, Scheduled: reg.started().In(p.tick.Location()), Outcome: Interrupted, Ticks: 1,
		Replica: reg.By, Token: reg.Token, Attempt: reg.Attempt,
	})
}

// release gives the lease back, on nobody's context.
func (j *job) release(lease *redlock.Lease) {
	ctx, cancel := context.WithTimeout(context.Background(), j.settings.ttl)
	defer cancel()
	if err := lease.Release(ctx); err != nil {
		j.scheduler.settings.logger.Debug("scheduler: release", "job", j.name, "error", err)
	}
}
