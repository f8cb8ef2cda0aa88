package scheduler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/quorate/quorate/internal/crontab"
	"github.com/quorate/quorate/redlock"
)

const (
	// look is how long a loop sleeps at most before it looks at the clock again: timers stand
	// still while the machine sleeps, and know nothing of a wall clock that is set.
	look = time.Second
	// setBack is how far the clock must have gone back before ticks that have been dealt with
	// are looked at again. Less is the clock being slewed, and waited out.
	setBack = 2 * time.Second
	// firstLook is how long a replica that was too late for the lease waits before it looks
	// whether the winner has recorded its claim, which takes that one round trip.
	firstLook = 10 * time.Millisecond
	lastLook  = time.Second
	// maxGhosts is how many claims that were not confirmed are kept in mind.
	maxGhosts = 64
)

// A loop is one replica's attention to one job. It keeps a view of the register, has decide say
// whether there may be something to do, and if so tries to win the lease and does it.
type loop struct {
	job       *job
	session   *session
	from      time.Time // this replica knows the job since
	seen      time.Time // ticks up to here were reported
	view      view
	adopt     bool          // the register may not know this replica's spec
	touched   time.Duration // when the register was last seen to be written, by Clock.Elapsed
	kept      time.Duration // when the control was last kept from being forgotten
	forgotten bool          // the nodes have no register, and this replica has

	net   *backoff.ExponentialBackOff
	tries int   // in vain, for what is due now
	blind bool  // the last look at the register found no quorum
	err   error // the last obstacle
	// hindered says for ticks that came due why this replica could not settle them.
	hindered map[int64]Reason
	// mine are ticks after seen that this replica settled.
	mine map[int64]bool
	// ghosts are the tokens of claims of this replica that were not confirmed: they may be in the
	// register all the same, but no run followed them.
	ghosts  []redlock.Token
	foreign string // fingerprint that was last reported as a mismatch
	turn    turn
	inLine  bool // has a place at the nodes
	claims  bool // as one of those that claim

	// Nothing is to be done between these times of the wall clock, unless the job is roused.
	idleFrom, idleTo time.Time
	lasts            time.Duration // what is known of a job may be left alone for this long
}

// A view is the register as it was last seen.
type view struct {
	reg    register
	known  bool
	holder string
	// until is when the leases under the runs that are open end, unless they are extended, by
	// Clock.Elapsed.
	until time.Duration
	at    time.Time              // when it was seen
	dead  map[redlock.Token]bool // runs of OverlapAllow that nobody holds a lease for
}

func newLoop(j *job, se *session, from time.Time) *loop {
	s := j.scheduler
	elapsed := s.settings.clock.Elapsed()
	every := s.locker.FenceTTL() / 4
	return &loop{
		lasts: every + crontab.Jitter(s.settings.identity+j.name, from, every/2),
		job:   j, session: se, from: from, seen: from, adopt: true,
		touched: elapsed, kept: elapsed,
		hindered: map[int64]Reason{}, mine: map[int64]bool{},
		net: backoff.NewExponentialBackOff(
			backoff.WithInitialInterval(firstLook), backoff.WithMaxInterval(lastLook), backoff.WithMaxElapsedTime(0)),
	}
}

// loop attends to the job until the session ends. Ticks up to from are not its business, unless the
// register says that they are somebody's.
func (j *job) loop(se *session, from time.Time) {
	l := newLoop(j, se, from)
	j.takeLeft()
	for ctx := se.accepting; ctx.Err() == nil; {
		wait := l.step(ctx)
		if wait <= 0 {
			continue
		}
		timer := time.NewTimer(min(wait, look))
		for idle := true; idle; {
			select {
			case <-timer.C:
				if wait := l.idle(); wait > 0 {
					timer.Reset(min(wait, look))
					continue
				}
			case <-j.wake:
			case <-ctx.Done():
			}
			idle = false
		}
		timer.Stop()
	}
}

// step does what can be done now, and says how long there is nothing else.
func (l *loop) step(ctx context.Context) time.Duration {
	j := l.job
	now := j.now()
	l.idleTo = time.Time{}
	defer l.leaveLine()
	if now.Before(l.seen.Add(-setBack)) {
		j.scheduler.settings.logger.Warn("scheduler: the wall clock was set back", "job", j.name, "to", now, "last_tick", l.seen)
		l.seen = now.Add(-look)
		l.from = earlier(l.from, l.seen) // else a job that was begun by a clock that is ahead would wait until then
	}
	if left := j.takeLeft(); left != nil {
		l.view = view{reg: *left, known: true}
		l.calm()
	}
	if l.overdue(l.kept) {
		j.scheduler.keepControl(ctx, j)
		l.kept = j.scheduler.settings.clock.Elapsed()
	}
	pending := l.report(now)
	if own := j.current(); own != nil {
		if own.lease.Err() == nil {
			l.overlapped(own, now)
			return l.until(j.comesDue(now))
		}
		// A function that goes on without its lease stops its own replica's next run only.
		if pending && l.enterLine(ctx, false) {
			l.inspect(ctx)
			l.report(now)
		}
		return look
	}
	for fresh := false; ; fresh = true {
		if !l.view.known || j.uninformed() {
			if !l.enterLine(ctx, false) || !l.inspect(ctx) || j.uninformed() && !l.inform(ctx) {
				return l.pause()
			}
			pending = l.report(now)
			fresh = true
		}
		d := l.consider(now)
		again := false // is to be looked at first
		switch {
		case !fresh && (l.stale() || d.busy && pending):
			again = true
		case d.busy && pending:
			l.hinder(now, Overlap, fmt.Errorf("%w: a run of the job goes on", redlock.ErrTaken))
			return l.pause()
		case d.busy:
			l.net.Reset()
			return l.rest(now, d.next)
		case !d.write && (l.forgotten || l.overdue(l.touched)):
		case !d.write:
			l.adopt = false // the register knows
			l.calm()
			if pending { // it waits for no run any more, and is late when it is late
				maps.DeleteFunc(l.hindered, func(_ int64, why Reason) bool { return why == Overlap })
				return l.until(d.next)
			}
			return l.rest(now, d.next)
		case d.run != nil && !j.room():
			l.hinder(now, Busy, nil)
			return l.pause()
		case l.tries > 0 && !fresh:
			again = true
		case l.tries > 0 && l.view.holder != "":
			l.hinder(now, Held, fmt.Errorf("%w: held by %s", redlock.ErrTaken, l.view.holder))
			return l.pause()
		}
		switch {
		case again:
		case d.run != nil && l.deaf(now):
			if !l.enterLine(ctx, false) || !l.inform(ctx) {
				return l.pause()
			}
			now = j.now()
			continue
		case !fresh && l.after(&d) > 0:
			if wait := l.turn.at - j.scheduler.settings.clock.Elapsed(); wait > 0 {
				return wait
			}
		case !l.enterLine(ctx, true):
			return look
		default:
			return l.attempt(ctx, now)
		}
		if !l.enterLine(ctx, false) || !l.inspect(ctx) {
			return l.pause()
		}
		now = j.now()
		pending = l.report(now)
	}
}

// calm takes note that nothing is left to be done.
func (l *loop) calm() {
	l.tries, l.err = 0, nil
	l.turn = turn{}
	l.net.Reset()
}

// pause is how long to wait after an obstacle.
func (l *loop) pause() time.Duration {
	l.tries++
	return l.net.NextBackOff()
}

// until is how long it is until a time of the wall clock, zero being none.
func (l *loop) until(t time.Time) time.Duration {
	wait := look
	if !t.IsZero() {
		wait = min(wait, t.Sub(l.job.now()))
	}
	if len(l.view.reg.Open) > 0 {
		wait = min(wait, l.view.until-l.job.scheduler.settings.clock.Elapsed())
	}
	return max(wait, time.Millisecond)
}

// stale reports whether the runs that are open may have lost their leases since they were seen.
func (l *loop) stale() bool {
	return len(l.view.reg.Open) > 0 && l.job.scheduler.settings.clock.Elapsed() >= l.view.until
}

// overdue reports whether the nodes would soon forget what was written then: what is known of a
// weekly job must not be gone when it comes due.
func (l *loop) overdue(written time.Duration) bool {
	return l.job.scheduler.settings.clock.Elapsed()-written > l.lasts
}

// consider asks what there may be to do, going by the view.
func (l *loop) consider(now time.Time) decision {
	reg := l.view.reg.clone()
	return l.job.decide(&reg, l.circumstances(now, 0, func(o *open) bool {
		return !slices.Contains(l.ghosts, o.Token) && (l.view.holder != "" || o.Own) && !l.view.dead[o.Token]
	}))
}

func (l *loop) circumstances(now time.Time, token redlock.Token, alive func(*open) bool) *circumstances {
	return &circumstances{
		now: now, from: l.from, replica: l.job.scheduler.settings.identity, token: token, control: l.job.asked(),
		ghosts: l.ghosts, alive: alive, adopt: l.adopt, memory: l.job.scheduler.locker.FenceTTL(),
		hindrance: func(t time.Time) Reason { return l.hindered[t.UnixMilli()] },
	}
}

// inspect looks at the register without a lease.
func (l *loop) inspect(ctx context.Context) bool {
	j := l.job
	s := j.scheduler
	status, err := s.locker.Inspect(ctx, j.key())
	l.blind = err != nil
	if err != nil {
		l.obstacle(err)
		return false
	}
	reg, err := readRegister(status.State)
	if err != nil {
		l.hinder(j.now(), Unreadable, err)
		return false
	}
	elapsed := s.settings.clock.Elapsed()
	if j.now().Sub(reg.written()) < s.locker.FenceTTL()/8 {
		l.touched = elapsed
	}
	reg = l.recall(reg)
	l.view = view{reg: reg, known: true, holder: status.Holder, until: elapsed + status.TTL + firstLook, at: j.now()}
	l.mismatch(&reg)
	return l.findDead(ctx)
}

// recall has what this replica saw last stand in for a register that the nodes have forgotten, as when all of
// them were restarted without their memory, one after the other, between two ticks: else the ticks that
// were run would be run again.
func (l *loop) recall(reg register) register {
	l.forgotten = reg.Version == 0 && l.view.reg.Version != 0
	if !l.forgotten {
		return reg
	}
	l.kept = l.job.scheduler.settings.clock.Elapsed() - l.lasts - 1 // and so they may have forgotten the control
	return l.view.reg.clone()
}

// findDead looks which of the open runs that have leases of their own have lost them.
func (l *loop) findDead(ctx context.Context) bool {
	clock := l.job.scheduler.settings.clock
	if !slices.ContainsFunc(l.view.reg.Open, func(o open) bool { return !o.Own }) {
		l.view.until = clock.Elapsed() + l.job.settings.ttl
	}
	l.view.dead = map[redlock.Token]bool{}
	for i := range l.view.reg.Open {
		o := &l.view.reg.Open[i]
		if !o.Own {
			continue
		}
		status, err := l.job.scheduler.locker.Inspect(ctx, l.job.runKey(o))
		if err != nil {
			l.obstacle(err)
			return false
		}
		l.view.dead[o.Token] = status.Holder == ""
		if status.Holder != "" {
			l.view.until = min(l.view.until, clock.Elapsed()+status.TTL+firstLook)
		}
	}
	return true
}

// deaf reports whether what people ask of the job may have changed without this replica hearing of
// it: it was cut off, or its machine slept.
func (l *loop) deaf(now time.Time) bool {
	lately := func(ms int64) bool { return now.Sub(time.UnixMilli(ms)).Abs() <= 2*bellLook }
	return l.session.listens && !lately(l.session.heard.Load()) && !lately(l.job.informedAt())
}

// inform looks at what people ask of the job.
func (l *loop) inform(ctx context.Context) bool {
	c, err := l.job.scheduler.readControl(ctx, l.job.name)
	if err != nil {
		l.hinderBy(err)
		return false
	}
	if own := l.job.asked(); c.Version == 0 && own.Version != 0 { // the nodes have forgotten it
		l.job.scheduler.keepControl(ctx, l.job)
		c = *own
	}
	l.job.told(c)
	return true
}

// obstacle takes note of why the nodes did not do what they were asked for.
func (l *loop) obstacle(err error) {
	if errors.Is(err, redlock.ErrClosed) {
		l.session.stop(err)
		return
	}
	l.hinderBy(err)
}

func (l *loop) hinderBy(err error) {
	why := NoQuorum
	switch {
	case errors.Is(err, redlock.ErrTaken):
		why = Held
	case errors.Is(err, ErrRegister):
		why = Unreadable
	}
	l.hinder(l.job.now(), why, err)
}

// hinder takes note of what keeps this replica from settling the ticks that are due.
func (l *loop) hinder(now time.Time, why Reason, err error) {
	l.err = err
	for _, t := range crontab.Last(l.job.schedule, l.seen, now, maxDue) {
		// One that this replica looked at too late was late in the first place.
		before := l.hindered[t.UnixMilli()]
		if before != "" && why != Held || before == "" && now.Sub(t.Add(l.job.delay(t))) < 2*look {
			l.hindered[t.UnixMilli()] = why
		}
	}
}

// report tells what became of the ticks that have come due, as far as the view knows, and whether
// there is one that nobody has settled and that is not late yet.
func (l *loop) report(now time.Time) (pending bool) {
	j := l.job
	due := crontab.Last(j.schedule, l.seen, now, maxDue)
	for _, t := range due {
		ms := t.UnixMilli()
		switch {
		case l.settled(ms, now):
			if !l.mine[ms] {
				l.elsewhere(t)
			}
		case l.inHand(t):
			l.hindered[ms] = Overlap
			return false
		case l.stale() && !l.blind:
			return true // it may have been in hand all the time
		case now.Before(t.Add(j.delay(t) + j.settings.startDeadline)):
			return true
		case l.hindered[ms] == Overlap && l.tries == 0 && !j.adrift():
			return true // it waited for a run that has ended, and may be run now
		default:
			l.unclaimed(t)
		}
		l.seen = t
		delete(l.mine, ms)
	}
	oldest := now.Add(-j.settings.window() - j.settings.jitter).UnixMilli()
	maps.DeleteFunc(l.hindered, func(ms int64, _ Reason) bool { return ms < oldest || l.settled(ms, now) })
	return false
}

// inHand reports whether a run went on when the tick came due, as it seems: then it is for the
// replica of that run to see to the tick, and it tells when the run has ended.
func (l *loop) inHand(t time.Time) bool {
	return l.job.held() && len(l.view.reg.Open) > 0 && l.view.holder != "" && !l.stale() && !l.view.at.Before(t.Add(l.job.delay(t)))
}

// settled reports whether the view says so of a tick. A claim without a lease under it does not
// count before whoever has the lease has seen it.
func (l *loop) settled(ms int64, now time.Time) bool {
	reg := &l.view.reg
	if !l.view.known {
		return false
	}
	if !reg.Settled.has(time.UnixMilli(ms)) {
		return later(l.job.passed(reg, now), reg.aged(now)).UnixMilli() >= ms && reg.Queued != ms
	}
	o := reg.find(&open{Kind: Scheduled, Tick: ms})
	return o == nil || !slices.Contains(l.ghosts, o.Token) && (o.Own || l.view.holder != "" || l.job.current() != nil)
}

// overlapped sees to ticks that come due while this replica runs the job.
func (l *loop) overlapped(own *execution, now time.Time) {
	for _, t := range crontab.Last(l.job.schedule, l.seen, now, maxDue) {
		if now.Before(t.Add(l.job.delay(t))) || l.mine[t.UnixMilli()] {
			continue
		}
		for _, e := range own.overlap(t, l.from) {
			for _, passed := range crontab.Last(l.job.schedule, later(l.seen, time.UnixMilli(e.Tick-1)), t, maxDue) {
				l.mine[passed.UnixMilli()] = true
			}
			l.job.scheduler.report(l.job.event(&e))
		}
	}
	l.view = view{reg: own.register(), known: true, holder: own.Replica, until: l.job.scheduler.settings.clock.Elapsed() + l.job.settings.ttl, at: now}
	l.report(now)
}

// elsewhere reports that another replica has settled a tick.
func (l *loop) elsewhere(t time.Time) {
	e := l.job.event(&entry{Kind: Scheduled, Tick: t.UnixMilli(), Outcome: Elsewhere})
	reg := &l.view.reg
	if o := reg.find(&open{Kind: Scheduled, Tick: t.UnixMilli()}); o != nil {
		e.Replica, e.Token, e.Attempt = o.By, o.Token, o.Attempt
	} else if i := slices.IndexFunc(reg.Ledger, func(e entry) bool { return e.Kind == Scheduled && e.Tick == t.UnixMilli() }); i >= 0 {
		e.Replica, e.Token, e.Attempt = reg.Ledger[i].By, reg.Ledger[i].Token, reg.Ledger[i].Attempt
	}
	l.job.scheduler.report(e)
}

// unclaimed raises the alarm about a tick that nobody has settled in time.
func (l *loop) unclaimed(t time.Time) {
	why := l.hindered[t.UnixMilli()]
	if why == "" {
		why = Late
	}
	e := l.job.event(&entry{Kind: Scheduled, Tick: t.UnixMilli(), Outcome: Unclaimed, Reason: why})
	e.Err = l.err
	l.job.scheduler.report(e)
}

// mismatch reports once that another replica has another spec for the job.
func (l *loop) mismatch(reg *register) {
	if reg.Spec == l.job.fingerprint {
		l.foreign = ""
		return
	}
	if reg.Spec == "" || reg.Spec == l.foreign {
		return
	}
	l.foreign = reg.Spec
	l.job.scheduler.mismatch(l.job)
}
