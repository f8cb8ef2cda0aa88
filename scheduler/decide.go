package scheduler

import (
	"slices"
	"time"

	"github.com/quorate/quorate/internal/crontab"
	"github.com/quorate/quorate/redlock"
)

// What is to be done with a job is decided by a function of its register and of what one replica
// knows, and by nothing else. Each replica asks it what there may be to do, with the register as
// it was last seen; and who has won the lease asks it again, with the register as it is.

const (
	// maxDropped is how many ticks that daylight saving left out are told at once, and maxLookBack
	// how old they may be.
	maxDropped  = 8
	maxLookBack = 40 * 24 * time.Hour
)

// circumstances are what a replica knows beside the register.
type circumstances struct {
	now     time.Time
	from    time.Time // since when this replica knows the job
	replica string
	token   redlock.Token // of the lease; 0 for who has none
	control *control
	ghosts  []redlock.Token // of claims of this replica that no run followed
	alive   func(*open) bool
	// hindrance is what kept this replica from settling a tick before, or "".
	hindrance func(tick time.Time) Reason
	adopt     bool          // the register is to be told of this replica's spec though nothing is due
	memory    time.Duration // after which the nodes forget what nobody uses
}

// A decision says what is to be done.
type decision struct {
	run     *open   // to be begun, once the register is saved
	settled []entry // what was settled without a run; in the ledger, and to be reported
	write   bool    // the register has changed
	busy    bool    // a run goes on, and nothing can be begun before it ends
	next    time.Time
}

// decide settles what is due, in the register, and says what is to be run.
func (j *job) decide(reg *register, c *circumstances) (d decision) {
	d.next = j.comesDue(c.now)
	since := c.from
	if reg.Spec == j.fingerprint {
		// The first to know the spec may have been one whose clock is ahead.
		since = earlier(since, time.UnixMilli(reg.Since))
	} else {
		if reg.Spec == "" {
			reg.forgotten(c)
		}
		d.write = c.adopt
		reg.Spec, reg.Since = j.fingerprint, since.UnixMilli()
	}
	if j.resume(reg, c, &d) {
		return d
	}
	if d.busy = len(reg.Open) > 0 && j.settings.overlap != OverlapAllow || len(reg.Open) >= maxOpen; d.busy {
		return d
	}
	if j.requested(reg, c, &d) {
		return d
	}
	j.leftOut(reg, c, &d, since)
	if j.due(reg, c, &d, since) {
		return d
	}
	j.backfill(reg, c, &d)
	return d
}

// forgotten has a register that is new, or that the nodes have forgotten, count the requests that an
// earlier one may have counted: the control can outlive it.
func (r *register) forgotten(c *circumstances) {
	last := func(requests []request) (number int64) {
		for _, q := range requests {
			if c.now.Sub(time.UnixMilli(q.At)) >= c.memory {
				number = max(number, q.Number)
			}
		}
		return number
	}
	r.Triggers, r.Backfills = last(c.control.Triggers), last(c.control.Backfills)
}

// resume sees to runs that were begun and that nobody is at any more.
func (j *job) resume(reg *register, c *circumstances, d *decision) bool {
	for _, o := range slices.Clone(reg.Open) {
		if c.alive(&o) {
			continue
		}
		ghost := slices.Contains(c.ghosts, o.Token)
		switch {
		case !ghost && o.Attempt >= j.settings.maxAttempts:
			why := Reason("")
			if j.settings.maxAttempts > 1 {
				why = Attempts
			}
			reg.end(&o)
			d.settle(reg, o.entry(Interrupted, why, time.Time{}, nil))
			continue
		case !ghost:
			o.Attempt++
		case o.Request == 0 && o.Attempt == 1 && c.now.After(time.UnixMilli(o.Tick).Add(j.settings.window()+j.settings.jitter)):
			reg.end(&o)
			d.settle(reg, entry{Kind: o.Kind, Tick: o.Tick, Outcome: Missed, Reason: NoQuorum})
			continue
		}
		j.begin(reg, c, d, o)
		return true
	}
	return false
}

// begin decides on a run.
func (j *job) begin(reg *register, c *circumstances, d *decision, run open) {
	run.By, run.Token, run.Begun, run.Own = c.replica, c.token, c.now.UnixMilli(), !j.held()
	if run.Attempt == 0 {
		run.Attempt = 1
	}
	reg.begin(run)
	d.run, d.write = &run, true
}

// settle decides on what is not run.
func (d *decision) settle(reg *register, e entry) {
	reg.note(e)
	d.settled = append(d.settled, e)
	d.write = true
}

// requested sees to triggers. A job that is paused is run all the same: somebody asked for it.
func (j *job) requested(reg *register, c *circumstances, d *decision) bool {
	for _, r := range c.control.Triggers {
		if r.Number > reg.Triggers {
			reg.Triggers = r.Number
			j.begin(reg, c, d, open{Kind: Triggered, Tick: r.At, Request: r.Number})
			return true
		}
	}
	return false
}

// due sees to the ticks that have come due, and that neither were settled nor passed over. Those that
// the policy leaves out are reported and passed over, and not settled one by one: if it is this
// replica's clock that is wrong, the others run them when they come due.
func (j *job) due(reg *register, c *circumstances, d *decision, since time.Time) bool {
	js := &j.settings
	since = later(since, j.passed(reg, c.now))
	if window := c.now.Add(-js.window() - js.jitter); since.Before(window) {
		j.aged(reg, c, d, since, window)
		since = window
	}
	var paused, ticks []time.Time
	for _, t := range reg.Settled.unsettled(j.schedule, since, c.now, maxDue) {
		switch at := t.Add(j.delay(t)); {
		case at.After(c.now):
			d.next = earlier(d.next, at)
		case c.control.pausedAt(t):
			paused = append(paused, t)
		default:
			ticks = append(ticks, t)
		}
	}
	q := j.local(reg.Queued)
	waits := reg.Queued != 0 && !reg.Settled.has(q)
	if js.misfire.kind == misfireAll && q.Add(j.delay(q)).After(c.now) {
		waits = false // a replica queued it whose clock is ahead: it passes over none before it, and comes due like them
	}
	if waits && c.control.pausedAt(q) {
		waits = false
		if !slices.ContainsFunc(paused, q.Equal) { // one that was overlapped has passed it over, or it is old
			paused = slices.Insert(paused, 0, q)
		}
	}
	j.pass(reg, d, paused, Paused, time.Time{})
	if waits && (js.misfire.kind != misfireAll || !slices.ContainsFunc(ticks, q.Equal)) {
		passed := q
		if len(paused) > 0 && js.misfire.kind != misfireAll {
			passed = later(passed, paused[len(paused)-1].Add(-js.jitter))
		}
		before := slices.DeleteFunc(slices.Clone(ticks), func(t time.Time) bool { return t.After(passed) || t.Equal(q) })
		j.late(reg, c, d, before, q)
		j.take(reg, c, d, q)
		return true
	}
	reg.Queued = 0
	if len(ticks) == 0 {
		return false
	}
	pick := len(ticks) - 1 // the newest
	if js.misfire.kind == misfireAll {
		pick = max(0, len(ticks)-js.misfire.limit)
	}
	j.late(reg, c, d, ticks[:pick], ticks[pick])
	j.take(reg, c, d, ticks[pick])
	return true
}

// overlap deals with a tick that comes due during a run, and gives what is settled by that: nothing
// when the tick is to wait.
func (j *job) overlap(reg *register, run *open, tick, from time.Time) []entry {
	ms := tick.UnixMilli()
	switch {
	case reg.Settled.has(tick):
		return nil
	case run.Kind != Scheduled: // it waits for what people asked for
		return nil
	case ms <= run.Begun: // it was due before the run, and is a matter of the policy for misfires
		return nil
	case j.settings.overlap == OverlapQueue && (reg.Queued == 0 || reg.Queued == ms):
		reg.Queued = ms
		return nil
	}
	ticks := []time.Time{tick}
	if j.settings.misfire.kind != misfireAll {
		// It passes over those that were due before the run, which nobody would tell of then.
		since := later(earlier(from, time.UnixMilli(reg.Since)), later(j.passed(reg, tick), reg.aged(tick)))
		before := reg.Settled.unsettled(j.schedule, since, tick.Add(-max(j.settings.jitter, time.Millisecond)), maxDue)
		before = slices.DeleteFunc(before, func(t time.Time) bool { return t.UnixMilli() == reg.Queued })
		ticks = append(before, tick)
	}
	var d decision
	j.pass(reg, &d, ticks, Overlap, time.Time{})
	return d.settled
}

// passed is up to when ticks that were not settled are none to be run any more. With MisfireAll
// that is up to where it was said so, and else up to the last that was settled.
func (j *job) passed(reg *register, now time.Time) time.Time {
	if j.settings.misfire.kind != misfireAll {
		return reg.Settled.before(now).Add(-j.settings.jitter)
	}
	return reg.aged(now)
}

// aged is up to when ticks were reported that nobody settled. What was said of a time that has
// not come, by a replica whose clock is ahead, does not count yet.
func (r *register) aged(now time.Time) time.Time {
	if aged := time.UnixMilli(r.Aged); !aged.After(now) {
		return aged
	}
	return time.Time{}
}

// take decides to run a tick.
func (j *job) take(reg *register, c *circumstances, d *decision, tick time.Time) {
	reg.Queued = 0
	reg.Settled.add(tick, j.schedule)
	j.begin(reg, c, d, open{Kind: Scheduled, Tick: tick.UnixMilli()})
}

// aged reports ticks that are too old for any policy, once.
func (j *job) aged(reg *register, c *circumstances, d *decision, since, window time.Time) {
	since = later(since, reg.aged(c.now))
	if !since.Before(window) {
		return
	}
	old := reg.Settled.unsettled(j.schedule, since, window, maxDue)
	old = slices.DeleteFunc(old, func(t time.Time) bool { return t.UnixMilli() == reg.Queued })
	if len(old) == 0 {
		return
	}
	why := Late
	if c.control.pausedAt(old[0]) {
		why = Paused
	}
	reg.Aged = window.UnixMilli()
	d.settle(reg, entry{Kind: Scheduled, Tick: old[0].UnixMilli(), Ticks: len(old), Outcome: Missed, Reason: why})
}

// late reports ticks that the policy leaves out before the one that is run, by what hindered them.
func (j *job) late(reg *register, c *circumstances, d *decision, ticks []time.Time, last time.Time) {
	if len(ticks) > 0 && j.settings.misfire.kind == misfireAll {
		upTo := min(ticks[len(ticks)-1].UnixMilli(), last.Add(-j.settings.jitter).UnixMilli())
		reg.Aged = max(reg.aged(c.now).UnixMilli(), upTo)
	}
	for len(ticks) > 0 {
		why := c.hindrance(ticks[0])
		n := 1
		for n < len(ticks) && c.hindrance(ticks[n]) == why {
			n++
		}
		if why == "" {
			why = Late
		}
		j.pass(reg, d, ticks[:n], why, last)
		ticks = ticks[n:]
	}
}

// pass takes note of ticks that are not run, and that the one at next passes over: or, where next is
// zero, the newest of them, but with MisfireAll none, since others beside them are to be run yet. With
// jitter the last of them might come due after it. Those that are not passed over are settled.
func (j *job) pass(reg *register, d *decision, ticks []time.Time, why Reason, next time.Time) {
	if len(ticks) == 0 {
		return
	}
	if last := ticks[len(ticks)-1]; next.IsZero() && j.settings.misfire.kind != misfireAll {
		reg.Settled.add(last, j.schedule)
		next = last
	}
	for _, t := range ticks {
		if t.After(next.Add(-j.settings.jitter)) {
			reg.Settled.add(t, j.schedule)
		}
	}
	e := entry{Kind: Scheduled, Tick: ticks[0].UnixMilli(), Ticks: len(ticks), Outcome: Missed, Reason: why}
	// A stretch of the same, such as a long pause, is one line of the ledger.
	if n := len(reg.Ledger); n > 0 {
		if line := reg.Ledger[n-1]; line.Kind == Scheduled && line.Outcome == Missed && line.Reason == why {
			line.Ticks = max(1, line.Ticks) + len(ticks)
			reg.Ledger = append(slices.Clone(reg.Ledger[:n-1]), line)
			d.settled, d.write = append(d.settled, e), true
			return
		}
	}
	d.settle(reg, e)
}

// leftOut notes the ticks that the policies for daylight saving have left out since the last tick
// that was settled.
func (j *job) leftOut(reg *register, c *circumstances, d *decision, since time.Time) {
	since = later(since, reg.Settled.before(c.now))
	if told := time.UnixMilli(reg.Dropped); !told.After(c.now) {
		since = later(since, told)
	}
	if oldest := c.now.Add(-maxLookBack); since.Before(oldest) {
		since = oldest
	}
	next := j.schedule.Next(since)
	if next.IsZero() || next.After(c.now) {
		return // noted together with the next tick
	}
	for _, t := range crontab.Dropped(j.schedule, since, c.now, maxDropped) {
		reg.Dropped = c.now.UnixMilli()
		d.settle(reg, entry{Kind: Scheduled, Tick: t.UnixMilli(), Outcome: Missed, Reason: DST})
	}
}

// backfill sees to the next tick of a backfill.
func (j *job) backfill(reg *register, c *circumstances, d *decision) bool {
	if slices.ContainsFunc(reg.Open, func(o open) bool { return o.Kind == Backfilled }) {
		return false // one after the other, also where runs may overlap
	}
	for _, r := range c.control.Backfills {
		if r.Number <= reg.Backfills {
			continue
		}
		from := time.UnixMilli(r.From - 1)
		if filled := time.UnixMilli(reg.Filled); filled.After(from) {
			from = filled
		}
		tick := j.schedule.Next(from)
		if tick.IsZero() || tick.UnixMilli() > r.To {
			reg.Backfills, reg.Filled = r.Number, 0
			d.write = true
			continue
		}
		reg.Filled = tick.UnixMilli()
		j.begin(reg, c, d, open{Kind: Backfilled, Tick: reg.Filled, Request: r.Number})
		return true
	}
	return false
}

// delay is the jitter of a tick.
func (j *job) delay(tick time.Time) time.Duration {
	if j.settings.jitter == 0 {
		return 0
	}
	return crontab.Jitter(j.name, tick, j.settings.jitter)
}

// comesDue is when the next tick comes due, zero if none does.
func (j *job) comesDue(now time.Time) time.Time {
	next := j.schedule.Next(now)
	if next.IsZero() {
		return next
	}
	return next.Add(j.delay(next))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// earlier is the first of two times of which zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
