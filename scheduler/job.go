package scheduler

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/crontab"
	"github.com/quorate/quorate/redlock"
)

// JobPrefix stands before a job's name in the name of the lease that has its register: with it as Prefix,
// redlock.Locker.List tells of jobs only.
const JobPrefix = "job/"

// Of other leases of a job.
const (
	runPrefix     = "run/"     // a run with OverlapAllow
	controlPrefix = "control/" // what people ask of the job
)

// A job is one line of the crontab.
type job struct {
	scheduler   *Scheduler
	name        string
	fingerprint string // equal for specs that mean the same
	schedule    crontab.Schedule
	fn          func(context.Context, Run) error
	settings    jobSettings
	lease       []redlock.LeaseOption
	wake        chan struct{} // has a value when the loop should look

	mu       sync.Mutex
	runs     map[*execution]struct{} // in this process
	left     *register               // as the last run left it, until the loop takes note
	control  control                 // as it was last seen
	informed int64                   // when control was seen, 0 if never
}

func makeJob(s *Scheduler, name string, fn func(context.Context, Run) error, js jobSettings) *job {
	return &job{scheduler: s, name: name, fn: fn, settings: js, lease: js.lease(), wake: make(chan struct{}, 1), runs: map[*execution]struct{}{}}
}

// key is the name of the job's lease.
func (j *job) key() string { return JobPrefix + j.name }

// runKey is the name of the lease of one run, where it is not the job's.
func (j *job) runKey(o *open) string {
	key := runPrefix + j.name + "/" + strconv.FormatInt(o.Tick, 10)
	if o.Request > 0 {
		key += "/" + string(o.Kind) + "/" + strconv.FormatInt(o.Request, 10)
	}
	return key
}

// held reports whether a run holds the job's lease. Otherwise it has one of its own, and the
// job's is held for as long as it takes to write the register.
func (j *job) held() bool { return j.settings.overlap != OverlapAllow }

// now is the wall clock, and no more: a time that carries Go's monotonic clock would be
// compared by that, which stands still while the machine sleeps.
func (j *job) now() time.Time { return j.scheduler.settings.clock.Now().Round(0) }

// current is the run that holds the job's lease in this process, or nil.
func (j *job) current() *execution {
	if !j.held() {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for x := range j.runs {
		return x
	}
	return nil
}

// adrift reports whether the function of a run goes on, which no other run in this process overlaps.
func (j *job) adrift() bool {
	own := j.current()
	if own == nil {
		return false
	}
	own.mu.Lock()
	defer own.mu.Unlock()
	return !own.over
}

// room reports whether this replica may have another run.
func (j *job) room() bool {
	if !j.reserve() {
		return false
	}
	j.scheduler.running.Add(-1)
	return true
}

// reserve makes room for another run, if this replica may have one. Who does not begin it takes
// it back from Scheduler.running.
func (j *job) reserve() bool {
	j.mu.Lock()
	n := len(j.runs)
	j.mu.Unlock()
	if n >= j.settings.concurrency {
		return false
	}
	most := int64(j.scheduler.settings.maxRuns)
	if j.scheduler.running.Add(1) > most && most > 0 {
		j.scheduler.running.Add(-1)
		return false
	}
	return true
}

// enter takes note of a run that begins, for which there is room.
func (j *job) enter(x *execution) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.runs[x] = struct{}{}
}

// leave takes note of a run that is over, and of the register as it left it.
func (j *job) leave(x *execution, left *register) {
	j.mu.Lock()
	delete(j.runs, x)
	j.left = left
	j.mu.Unlock()
	j.scheduler.running.Add(-1)
	if j.scheduler.settings.maxRuns > 0 {
		j.scheduler.wakeAll()
	}
	j.rouse()
}

// takeLeft gives the register as the last run left it, once.
func (j *job) takeLeft() *register {
	j.mu.Lock()
	defer j.mu.Unlock()
	left := j.left
	j.left = nil
	return left
}

// asked is what people ask of the job, as far as this replica knows.
func (j *job) asked() *control {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := j.control
	return &c
}

// told takes note of what people ask of the job.
func (j *job) told(c control) {
	now := j.now().UnixMilli()
	j.mu.Lock()
	j.control, j.informed = c, now
	j.mu.Unlock()
	j.rouse()
}

// uninformed reports whether the job's control was never seen.
func (j *job) uninformed() bool { return j.informedAt() == 0 }

// informedAt is when the job's control was seen, in Unix milliseconds.
func (j *job) informedAt() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.informed
}

// rouse has the loop look.
func (j *job) rouse() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// release gives a lease back, on nobody's context.
func (j *job) release(lease *redlock.Lease) {
	ctx, cancel := context.WithTimeout(context.Background(), j.settings.ttl)
	defer cancel()
	if err := lease.Release(ctx); err != nil {
		j.scheduler.settings.logger.Debug("scheduler: release", "job", j.name, "error", err)
	}
}

// brief are the options of the job's lease where it is held only while the register is written.
func (j *job) brief() []redlock.LeaseOption {
	return []redlock.LeaseOption{redlock.WithTTL(j.settings.ttl)}
}

// mismatch reports that another replica has another spec.
func (s *Scheduler) mismatch(j *job) {
	s.report(Event{Job: j.name, Scheduled: j.now(), Outcome: Mismatch, Labels: j.settings.labels})
}

// local gives a time of the register in the job's time zone.
func (j *job) local(ms int64) time.Time { return time.UnixMilli(ms).In(crontab.Location(j.schedule)) }

// event tells of a line of the ledger.
func (j *job) event(e *entry) Event {
	return Event{
		Job: j.name, Kind: e.Kind, Scheduled: j.local(e.Tick), Outcome: e.Outcome, Reason: e.Reason, Ticks: max(1, e.Ticks),
		Replica: e.By, Token: e.Token, Attempt: e.Attempt, Labels: j.settings.labels,
	}
}
