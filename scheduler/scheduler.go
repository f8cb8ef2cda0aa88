package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/redlock"
)

// namePrefix stands before a job's name in the name of its lease.
const namePrefix = "job/"

// A Scheduler runs the ticks of its jobs, each once across all replicas whose Lockers use the
// same fleet and key prefix. It is safe for use by many goroutines. Make it with New.
type Scheduler struct {
	locker    *redlock.Locker
	settings  settings
	telemetry *telemetry

	mu      sync.Mutex
	jobs    map[string]*job
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
	return &Scheduler{locker: locker, settings: s, telemetry: t, jobs: map[string]*job{}}, nil
}

// Add adds a job under a name that all replicas share. A spec has five fields (minute, hour,
// day of month, month, day of week) or six with the second first, or is a descriptor (@hourly,
// @daily, @weekly, @monthly, @yearly) or an interval ("@every 90s", 1 s at least), which is
// counted from the Unix epoch. CRON_TZ=Europe/Berlin before it sets its time zone.
//
// fn is given a context that ends when the job's lease or its timeout does; see Run for what
// shutting down does. The lease's state belongs to the Scheduler: fn must not save to it.
//
// A job may be added while Run runs, and is due from then on: no tick before that is run. The
// errors are ErrInvalidJob, ErrDuplicateJob, ErrInvalidSpec, ErrInvalidOption, and those of the
// Locker where it refuses the name or the TTL.
func (s *Scheduler) Add(name, spec string, fn func(ctx context.Context, run Run) error, opts ...JobOption) error {
	j, err := s.newJob(name, spec, fn, opts)
	if err != nil {
		return fmt.Errorf("scheduler: add job %.64q: %w", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs[name] != nil {
		return fmt.Errorf("scheduler: add job %.64q: %w; each job needs a name of its own", name, ErrDuplicateJob)
	}
	s.jobs[name] = j
	if s.session != nil {
		s.session.follow(j)
	}
	return nil
}

func (s *Scheduler) newJob(name, spec string, fn func(context.Context, Run) error, opts []JobOption) (*job, error) {
	switch {
	case name == "":
		return nil, fmt.Errorf("%w: it has no name", ErrInvalidJob)
	case fn == nil:
		return nil, fmt.Errorf("%w: its function is nil", ErrInvalidJob)
	}
	js, err := s.settings.job.with(opts)
	if err != nil {
		return nil, err
	}
	j := &job{scheduler: s, name: name, spec: spec, fn: fn, settings: js, lease: js.lease()}
	if j.schedule, err = parse(spec, js.location, j.now()); err != nil {
		return nil, err
	}
	return j, s.check(j)
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
// Ticks from before Run was called are not run. ctx's values are passed on to the runs.
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
	se.stop(nil)
	se.cancelRuns(nil)
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
	loops      sync.WaitGroup
	runs       sync.WaitGroup
	closing    bool // no job may join; guarded by the Scheduler
}

func (s *Scheduler) begin(ctx context.Context) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != nil {
		return nil, fmt.Errorf("scheduler: %w: let the first Run return before you call it again, or make another Scheduler", ErrRunning)
	}
	se := &session{}
	se.accepting, se.stop = context.WithCancelCause(ctx)
	se.running, se.cancelRuns = context.WithCancelCause(context.WithoutCancel(ctx))
	s.session = se
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
	se.loops.Go(func() { j.loop(se, from) })
}

// unfinished are the jobs that have a run.
func (s *Scheduler) unfinished() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name, j := range s.jobs {
		if j.current() != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
