package scheduler

import (
	"context"
	"errors"
	"time"

	"github.com/quorate/quorate/internal/crontab"
	"github.com/quorate/quorate/redlock"
)

// attempt asks for the lease, and does what is due if it gets it.
func (l *loop) attempt(ctx context.Context, now time.Time) time.Duration {
	j := l.job
	opts := j.lease
	if !j.held() {
		opts = j.brief()
	}
	lease, err := j.scheduler.locker.TryAcquire(ctx, j.key(), opts...)
	if err != nil {
		if ctx.Err() == nil {
			l.obstacle(err)
		}
		return l.pause()
	}
	l.touched = j.scheduler.settings.clock.Elapsed()
	keeps := false
	defer func() {
		if !keeps {
			j.release(lease)
			l.view.holder = ""
		}
	}()
	reg, err := readRegister(lease.State())
	if err != nil {
		l.hinder(now, Unreadable, err)
		return l.pause()
	}
	reg = l.recall(reg)
	l.mismatch(&reg)
	l.view = view{reg: reg, known: true, holder: lease.Owner()}
	l.report(j.now())
	if !l.findDead(ctx) {
		return l.pause()
	}
	now = j.now()
	var done bool
	if keeps, done = l.claim(ctx, lease, now); !done {
		return l.pause()
	}
	return 0
}

// claim decides under the lease, records what was decided, and begins the run if there is one. It
// reports whether the run keeps the lease, and whether it did what it could.
func (l *loop) claim(ctx context.Context, lease *redlock.Lease, now time.Time) (keeps, done bool) {
	j := l.job
	next := l.view.reg.clone()
	d := j.decide(&next, l.circumstances(now, lease.Token(), func(o *open) bool { return o.Own && !l.view.dead[o.Token] }))
	d.write = d.write || l.forgotten
	if !d.write || ctx.Err() != nil {
		l.adopt = l.adopt && d.write
		return false, !d.write
	}
	if d.run != nil {
		if !j.reserve() {
			l.hinder(now, Busy, nil)
			return false, false
		}
		begun := false
		defer func() {
			if !begun {
				j.scheduler.running.Add(-1)
			}
		}()
		defer func() { begun = done }()
	}
	under := lease // the run
	if d.run != nil && !j.held() {
		own, err := j.scheduler.locker.TryAcquire(ctx, j.runKey(d.run), j.lease...)
		if err != nil {
			l.obstacle(err)
			return false, false
		}
		under = own
	}
	if !l.confirm(ctx, lease, next.encode()) {
		if d.run != nil {
			l.ghosts = append(l.ghosts, lease.Token())
			l.ghosts = l.ghosts[max(0, len(l.ghosts)-maxGhosts):]
		}
		if under != lease {
			j.release(under)
		}
		l.view.known = false // what is there now is not known
		return false, false
	}
	l.adopt, l.forgotten = false, false
	l.calm()
	l.view.reg = next
	for _, t := range crontab.Last(j.schedule, l.seen, now, maxDue) {
		if l.settled(t.UnixMilli(), now) {
			l.mine[t.UnixMilli()] = true
		}
	}
	for i := range d.settled {
		j.scheduler.report(j.event(&d.settled[i]))
	}
	if d.run == nil {
		return false, true
	}
	j.start(l.session, under, next, *d.run)
	return under == lease, true
}

// confirm saves the register until a quorum has it. Without that the run must not begin: the
// next holder of the lease might not find the claim.
func (l *loop) confirm(ctx context.Context, lease *redlock.Lease, state []byte) bool {
	for {
		// A claim that is under way is not given up half: it might be on record.
		err := lease.Save(context.WithoutCancel(ctx), state)
		if err == nil {
			return true
		}
		l.obstacle(err)
		if lease.Err() != nil || errors.Is(err, redlock.ErrStaleToken) || errors.Is(err, redlock.ErrStateTooLarge) || sleep(ctx, firstLook) != nil {
			return false
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
