package scheduler

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/quorate/quorate/internal/crontab"
	"github.com/quorate/quorate/redlock"
)

// A Scheduler runs the ticks of its jobs, each once across all replicas whose Lockers use the
// same fleet and key prefix. It is safe for use by many goroutines. Make it with New.
type Scheduler struct {
	locker    *redlock.Locker
	settings  settings
	telemetry *telemetry
	id        uint64       // hash of the identity
	running   atomic.Int64 // runs in this process
	peers     peers
	line      line

	mu      sync.Mutex
	jobs    map[string]*job
	names   uint64   // hash of the jobs' names, in whatever order
	session *session // of the Run that goes on, or nil
}

// New makes a Scheduler. The Locker stays the caller's, to be closed after Run has returned.
// The error is ErrInvalidOption.
func New(locker *redlock.Locker, opts ...Option) (*Scheduler, error) {
	if locker == nil {
		return nil, fmt.Errorf("scheduler: %w: the Locker is nil; make one with redlock.New", ErrInvalidOption)
	}
	s, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	t, err := newTelemetry(&s)
	if err != nil {
		return nil, fmt.Errorf("scheduler: create metrics: %w", err)
	}
	return &Scheduler{locker: locker, settings: s, telemetry: t, id: hash(s.identity), jobs: map[string]*job{}}, nil
}

// Add adds a job under a name that all replicas share. A spec has five fields (minute, hour,
// day of month, month, day of week) or six with the second first, or is a descriptor (@hourly,
// @daily, @weekly, @monthly, @yearly), an interval ("@every 90s", 1 s at least), which is counted
// from the Unix epoch, or one time ("@at 2030-01-31T18:00:00Z"). CRON_TZ=Europe/Berlin before it
// sets its time zone.
//
// fn is given a context that ends when the job's lease or its timeout does; see Run for what
// shutting down does. The lease's state belongs to the Scheduler: fn must not save to it.
//
// A job may be added while Run runs, and is due from then on: no tick before that is run, unless
// another replica knew the job, with the same spec, already: see WithMisfire. The
// errors are ErrInvalidJob, ErrDuplicateJob, ErrInvalidSpec, ErrInvalidOption, and those of the
// Locker where it refuses the name or the TTL.
func (s *Scheduler) Add(name, spec string, fn func(ctx context.Context, run Run) error, opts ...JobOption) error {
	return s.add(name, fn, opts, func(js *jobSettings) (crontab.Schedule, error) {
		schedule, err := crontab.Parse(spec, js.location, crontab.Gap(js.gap), crontab.Fold(js.fold))
		if err != nil {
			return nil, fmt.Errorf("%w %.64q: %w", ErrInvalidSpec, spec, err)
		}
		return schedule, nil
	})
}

// AddAt adds a job that is due once. One whose time has passed is added all the same, since a
// service that is started again must not fail for that: it is run if it was missed, by WithMisfire.
func (s *Scheduler) AddAt(name string, at time.Time, fn func(ctx context.Context, run Run) error, opts ...JobOption) error {
	return s.add(name, fn, opts, func(*jobSettings) (crontab.Schedule, error) {
		if at.IsZero() {
			return nil, fmt.Errorf("%w: the time is zero", ErrInvalidSpec)
		}
		return crontab.At(at), nil
	})
}

// AddSchedule adds a job with a schedule of any kind. All replicas must give the same ticks, and
// ticks must not depend on when they are asked for, as those of cron.Every do: use Add with
// "@every" instead.
func (s *Scheduler) AddSchedule(name string, schedule cron.Schedule, fn func(ctx context.Context, run Run) error, opts ...JobOption) error {
	return s.add(name, fn, opts, func(js *jobSettings) (crontab.Schedule, error) {
		switch schedule.(type) {
		case nil:
			return nil, fmt.Errorf("%w: the schedule is nil", ErrInvalidSpec)
		case cron.ConstantDelaySchedule, *cron.ConstantDelaySchedule:
			return nil, fmt.Errorf("%w: cron.Every counts from when each replica is started, so they would not agree; add the job with the spec %q",
				ErrInvalidSpec, "@every 90s")
		}
		wrapped := crontab.Wrap(schedule, js.location)
		if wrapped.Next(s.now()); crontab.Fault(wrapped) != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalidSpec, crontab.Fault(wrapped))
		}
		return wrapped, nil
	})
}

func (s *Scheduler) add(name string, fn func(context.Context, Run) error, opts []JobOption, schedule func(*jobSettings) (crontab.Schedule, error)) error {
	j, err := s.newJob(name, fn, opts, schedule)
	if err != nil {
		return fmt.Errorf("scheduler: add job %.64q: %w", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs[name] != nil {
		return fmt.Errorf("scheduler: add job %.64q: %w; each job needs a name of its own", name, ErrDuplicateJob)
	}
	s.jobs[name] = j
	s.names ^= hash(name)
	if s.session != nil {
		s.session.follow(j)
	}
	return nil
}

func (s *Scheduler) newJob(name string, fn func(context.Context, Run) error, opts []JobOption, schedule func(*jobSettings) (crontab.Schedule, error)) (*job, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if fn == nil {
		return nil, fmt.Errorf("%w: its function is nil", ErrInvalidJob)
	}
	js, err := s.settings.job.with(opts)
	if err != nil {
		return nil, err
	}
	j := makeJob(s, name, fn, js)
	if j.schedule, err = schedule(&js); err != nil {
		return nil, err
	}
	// A time that has passed is no reason to refuse a service that is started again.
	if crontab.Never(j.schedule, j.now()) && crontab.Never(j.schedule, time.Time{}) {
		return nil, fmt.Errorf("%w: it does not come due within five years", ErrInvalidSpec)
	}
	j.fingerprint = fingerprint(j.schedule)
	return j, s.check(j)
}

// fingerprint is short, and equal for schedules that mean the same.
func fingerprint(s crontab.Schedule) string {
	sum := sha256.Sum256([]byte(crontab.Text(s)))
	return hex.EncodeToString(sum[:6])
}

func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: it has no name", ErrInvalidJob)
	case len(name) > MaxNameLength:
		return fmt.Errorf("%w: its name has %d bytes, the limit is %d", ErrInvalidJob, len(name), MaxNameLength)
	}
	return nil
}

// check has the Locker look at the name and the options of a job's lease.
func (s *Scheduler) check(j *job) error {
	err := s.locker.Validate(j.key(), j.lease...)
	if errors.Is(err, redlock.ErrInvalidName) {
		return fmt.Errorf("%w: %w", ErrInvalidJob, err)
	}
	return err
}

// Run runs the jobs until ctx ends, or the Locker is closed, and then drains: no tick is
// claimed any more; runs go on until they return, or for WithDrainTimeout, after which their
// contexts end too. Run returns only when every function has returned and everything that it
// started has ended.
//
// It returns nil when all runs ended by themselves; an error that wraps ErrDrainTimeout and
// names the jobs whose runs had to be cancelled; redlock.ErrClosed; ErrRunning, at once, when
// another Run goes on. After it has returned it may be called again.
//
// Ticks from before Run was called are run by WithMisfire, if a replica knew the job then. ctx's values are passed on to the runs.
func (s *Scheduler) Run(ctx context.Context) error {
	se, err := s.begin(ctx)
	if err != nil {
		return err
	}
	<-se.accepting.Done()
	drain := time.NewTimer(s.settings.drainTimeout)
	defer drain.Stop()
	s.mu.Lock()
	se.closing = true
	s.mu.Unlock()

	ended := make(chan struct{})
	go func() {
		se.listening.Wait()
		se.loops.Wait() // they start the runs
		se.runs.Wait()
		close(ended)
	}()
	var late []string
	select {
	case <-ended:
	case <-drain.C:
		late = s.unfinished()
		s.settings.logger.Warn("scheduler: cancelling runs that outlast the drain timeout; waiting for them to return", "jobs", late)
		se.cancelRuns(ErrDrainTimeout)
		<-ended
	}
	closed := errors.Is(context.Cause(se.accepting), redlock.ErrClosed)
	se.end()
	s.mu.Lock()
	s.session = nil
	s.mu.Unlock()

	if len(late) > 0 {
		err = fmt.Errorf("scheduler: %w of %v: cancelled the runs of %s; raise WithDrainTimeout, or have them end when they are told to",
			ErrDrainTimeout, s.settings.drainTimeout, strings.Join(late, ", "))
	}
	if closed {
		err = errors.Join(fmt.Errorf("scheduler: %w; let Run return before the Locker is closed", redlock.ErrClosed), err)
	}
	return err
}

// A session is one call of Run. It owns a goroutine for each job, and one for each run.
type session struct {
	accepting context.Context // ticks are claimed until it ends
	stop      context.CancelCauseFunc
	running   context.Context // runs are cancelled when it ends
	// cancelRuns ends running.
	cancelRuns context.CancelCauseFunc
	listening  sync.WaitGroup
	loops      sync.WaitGroup
	runs       sync.WaitGroup
	closing    bool // no job may join; guarded by the Scheduler

	listens bool         // to the bell
	heard   atomic.Int64 // when the bell was last looked at, in Unix milliseconds
}

func newSession(ctx context.Context) *session {
	se := &session{}
	se.accepting, se.stop = context.WithCancelCause(ctx)
	se.running, se.cancelRuns = context.WithCancelCause(context.WithoutCancel(ctx))
	return se
}

// end ends what newSession made.
func (se *session) end() {
	se.stop(nil)
	se.cancelRuns(nil)
}

func (s *Scheduler) begin(ctx context.Context) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != nil {
		return nil, fmt.Errorf("scheduler: %w: let the first Run return before you call it again, or make another Scheduler", ErrRunning)
	}
	se := newSession(ctx)
	s.session, se.listens = se, true
	se.listening.Go(func() { s.listen(se) })
	se.listening.Go(func() { s.announce(se) })
	for _, j := range s.jobs {
		se.follow(j)
	}
	return se, nil
}

// follow starts the loop of a job. Guarded by the Scheduler.
func (se *session) follow(j *job) {
	if se.closing {
		return
	}
	from := j.now()
	j.mu.Lock()
	j.informed = 0 // what was asked since an earlier Run ended is not known
	j.mu.Unlock()
	se.loops.Go(func() { j.loop(se, from) })
}

// unfinished are the jobs that have a run.
func (s *Scheduler) unfinished() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name, j := range s.jobs {
		j.mu.Lock()
		n := len(j.runs)
		j.mu.Unlock()
		if n > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// wakeAll has all loops look.
func (s *Scheduler) wakeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		j.rouse()
	}
}

func (s *Scheduler) job(name string) *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.jobs[name]
}
