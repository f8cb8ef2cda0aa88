package scheduler

import (
	"context"
	"time"
)

// A turn is when this replica does something that others may do as well.
type turn struct {
	what  uint64        // a hash of what it is
	after int           // how many others go before
	at    time.Duration // by Clock.Elapsed
}

// after is how many other replicas go before this one in what there is to do.
func (l *loop) after(d *decision) int {
	s := l.job.scheduler
	what := hash(l.job.name)
	if run := d.run; run != nil {
		what = mix(mix(what^uint64(run.Tick)) ^ uint64(run.Request)) //nolint:gosec // bits
	}
	if what != l.turn.what {
		n := s.peers.before(what, s.id, s.jobsHash(), l.job.now())
		l.turn = turn{what: what, after: n, at: s.settings.clock.Elapsed() + min(time.Duration(n)*giveWay, look)}
	}
	return l.turn.after
}

// enterLine waits until it is this job's turn at the nodes, and keeps that until the step is done. It is
// to claim what this replica goes first in, or to look.
func (l *loop) enterLine(ctx context.Context, claim bool) bool {
	if l.inLine {
		return true
	}
	l.claims = claim
	l.inLine = l.job.scheduler.line.enter(ctx, claim) == nil
	return l.inLine
}

func (l *loop) leaveLine() {
	if l.inLine {
		l.job.scheduler.line.leave(l.claims)
		l.inLine = false
	}
}

// rest is how long there is nothing to be done before a time of the wall clock. Until then, idle says so
// without another look at everything: ten thousand jobs wait at once.
func (l *loop) rest(now, next time.Time) time.Duration {
	wait := l.until(next)
	l.idleFrom, l.idleTo = now, next
	if next.IsZero() {
		l.idleTo = now.Add(l.lasts)
	}
	return wait
}

// idle is how long there is still nothing to be done, 0 where that has to be looked at.
func (l *loop) idle() time.Duration {
	now := l.job.now()
	if now.Before(l.idleFrom) || !now.Before(l.idleTo) || l.stale() || l.overdue(l.kept) || l.overdue(l.touched) {
		return 0
	}
	l.idleFrom = now
	return l.until(l.idleTo)
}
