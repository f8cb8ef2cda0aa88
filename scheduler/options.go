package scheduler

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/redlock"
)

// Defaults and limits.
const (
	DefaultTimeout       = time.Hour
	DefaultStartDeadline = time.Minute
	DefaultCatchUp       = time.Hour
	DefaultDrainTimeout  = 30 * time.Second

	// MaxNameLength is the longest name of a job, in bytes.
	MaxNameLength = redlock.MaxNameLength - 112
	// MaxLabels is how many bytes the labels of a job may have, keys and values together.
	MaxLabels = 1 << 10
)

// An Option is a setting of a Scheduler.
type Option interface{ apply(*settings) }

// A JobOption is a setting of one job. Given to New it is the default of all jobs.
type JobOption interface {
	Option
	applyJob(*jobSettings)
}

type settings struct {
	identity     string
	drainTimeout time.Duration
	maxRuns      int // 0: no limit
	observer     func(Event)
	clock        redlock.Clock
	logger       *slog.Logger
	tracers      trace.TracerProvider
	meters       metric.MeterProvider
	job          jobSettings
}

type jobSettings struct {
	location      *time.Location
	ttl           time.Duration
	timeout       time.Duration
	startDeadline time.Duration
	catchUp       time.Duration
	misfire       MisfirePolicy
	overlap       OverlapPolicy
	maxAttempts   int // 1: at most once
	gap           Gap
	fold          Fold
	jitter        time.Duration
	retry         func() backoff.BackOff // nil: none
	concurrency   int
	labels        map[string]string
}

type option func(*settings)

func (o option) apply(s *settings) { o(s) }

type jobOption func(*jobSettings)

func (o jobOption) apply(s *settings)        { o(&s.job) }
func (o jobOption) applyJob(js *jobSettings) { o(js) }

// WithLocation sets the time zone of specs that name none themselves (CRON_TZ=…). Default UTC,
// not time.Local: replicas on machines with different zones must agree on the ticks.
func WithLocation(loc *time.Location) JobOption {
	return jobOption(func(s *jobSettings) { s.location = loc })
}

// WithTTL sets the TTL of a job's lease, which is extended while a run lasts. Default
// redlock.DefaultTTL, whatever the Locker's own default is. When a replica dies in a run, no
// other runs the job's next ticks for at most this long.
func WithTTL(d time.Duration) JobOption {
	return jobOption(func(s *jobSettings) { s.ttl = d })
}

// WithTimeout bounds one run: its context ends after this time, and its lease is extended for
// little longer, so that a function which ignores its context does not stop the job for ever.
// Default 1 h.
func WithTimeout(d time.Duration) JobOption {
	return jobOption(func(s *jobSettings) { s.timeout = d })
}

// WithStartDeadline sets how long after its time a tick may be started without being late. One
// that nobody has claimed by then is reported as Unclaimed, by each replica that sees it so; what
// becomes of it says WithMisfire. Default 1 min.
func WithStartDeadline(d time.Duration) JobOption {
	return jobOption(func(s *jobSettings) { s.startDeadline = d })
}

// WithMisfire sets what becomes of ticks that were not started in time. Default MisfireNewest.
func WithMisfire(m MisfirePolicy) JobOption {
	return jobOption(func(s *jobSettings) { s.misfire = m })
}

// WithCatchUp sets how old a tick may be that MisfireNewest or MisfireAll still runs. Older ones
// are missed. Default 1 h. What is known of a job outlives its last use by redlock.WithFenceTTL,
// 24 h by default: when all replicas are down for longer, there is nothing to catch up with.
func WithCatchUp(window time.Duration) JobOption {
	return jobOption(func(s *jobSettings) { s.catchUp = window })
}

// WithOverlap sets what becomes of a tick that comes due during a run. Default OverlapSkip.
func WithOverlap(o OverlapPolicy) JobOption {
	return jobOption(func(s *jobSettings) { s.overlap = o })
}

// WithAtLeastOnce has a tick taken over when the replica that runs it dies or loses its lease:
// another runs it when that lease has ended, with the next attempt and a higher token, until a run
// has been completed, successfully or not, or maxAttempts runs were started. So the function may
// be run more than once for a tick, in part or in full: see Run.Step and Run.Token. The default is
// at most once, with 1 attempt.
func WithAtLeastOnce(maxAttempts int) JobOption {
	return jobOption(func(s *jobSettings) { s.maxAttempts = maxAttempts })
}

// WithDST sets what becomes of ticks at local times that do not exist, or exist twice, where a
// spec names hours. Default GapRunAfter and FoldOnce: a daily job runs on each day, and once. A
// spec whose hour is * goes by the time that passes, and is not concerned.
func WithDST(gap Gap, fold Fold) JobOption {
	return jobOption(func(s *jobSettings) { s.gap, s.fold = gap, fold })
}

// WithJitter delays each tick by a time below limit that depends on the job's name and the tick and
// nothing else, so that many jobs do not start in the same instant and all replicas agree.
// Run.Scheduled is the time without it. Default 0, none.
func WithJitter(limit time.Duration) JobOption {
	return jobOption(func(s *jobSettings) { s.jitter = limit })
}

// WithRetry has a run that failed tried again by the same replica, within its timeout and under
// its lease, for as long as what policy returns says; policy is called once for each run. An error
// made with backoff.Permanent and a panic end it. Default: no retry.
//
//	scheduler.WithRetry(func() backoff.BackOff {
//		return backoff.WithMaxRetries(backoff.NewExponentialBackOff(), 3)
//	})
func WithRetry(policy func() backoff.BackOff) JobOption {
	return jobOption(func(s *jobSettings) { s.retry = policy })
}

// WithConcurrency sets how many runs of a job with OverlapAllow one replica has at the same time;
// at its limit, it leaves ticks to others. Default 16, at most 16: the register has room for 16
// runs of a job in the fleet.
func WithConcurrency(n int) JobOption {
	return jobOption(func(s *jobSettings) { s.concurrency = n })
}

// WithLabels describes a job: in Run, in events, and as attributes "quorate.label.KEY" of its
// spans. At most MaxLabels bytes. Default none.
func WithLabels(labels map[string]string) JobOption {
	labels = maps.Clone(labels)
	return jobOption(func(s *jobSettings) { s.labels = labels })
}

// WithMaxRuns sets how many runs, of all jobs, this replica has at the same time; at its limit, it
// leaves ticks to others. Default 0, no limit.
func WithMaxRuns(n int) Option {
	return option(func(s *settings) { s.maxRuns = n })
}

// WithDrainTimeout sets how long runs may go on after the context of Run has ended. Then their
// contexts end. Default 30 s; 0 ends them at once.
func WithDrainTimeout(d time.Duration) Option {
	return option(func(s *settings) { s.drainTimeout = d })
}

// WithIdentity sets the name by which the register and the logs call this replica. Default
// "host:pid". It is for people: nothing depends on its being unique.
func WithIdentity(identity string) Option {
	return option(func(s *settings) { s.identity = identity })
}

// WithObserver sets a function that is told what became of each tick, as this replica saw it.
// It is called by several goroutines, and the job waits for it: it must be quick.
func WithObserver(f func(Event)) Option {
	return option(func(s *settings) { s.observer = f })
}

// WithClock sets the clock, for tests. Its Now decides when a tick is due. Default: the system's.
func WithClock(c redlock.Clock) Option {
	return option(func(s *settings) { s.clock = c })
}

// WithLogger sets where an operator is told what he must know. Default slog.Default().
func WithLogger(l *slog.Logger) Option {
	return option(func(s *settings) { s.logger = l })
}

// WithTracerProvider sets where spans go. Default: the global one.
func WithTracerProvider(p trace.TracerProvider) Option {
	return option(func(s *settings) { s.tracers = p })
}

// WithMeterProvider sets where metrics go. Default: the global one.
func WithMeterProvider(p metric.MeterProvider) Option {
	return option(func(s *settings) { s.meters = p })
}

func newSettings(opts []Option) (settings, error) {
	s := settings{
		identity:     defaultIdentity(),
		drainTimeout: DefaultDrainTimeout,
		job: jobSettings{
			location: time.UTC, ttl: redlock.DefaultTTL,
			timeout: DefaultTimeout, startDeadline: DefaultStartDeadline, catchUp: DefaultCatchUp,
			maxAttempts: 1, concurrency: maxOpen,
		},
	}
	for _, o := range opts {
		if o == nil {
			return s, fmt.Errorf("scheduler: %w: a nil Option", ErrInvalidOption)
		}
		o.apply(&s)
	}
	if s.clock == nil {
		s.clock = systemClock{time.Now()}
	}
	if s.logger == nil {
		s.logger = slog.Default()
	}
	if s.tracers == nil {
		s.tracers = otel.GetTracerProvider()
	}
	if s.meters == nil {
		s.meters = otel.GetMeterProvider()
	}
	switch {
	case s.identity == "" || len(s.identity) > maxIdentity:
		return s, fmt.Errorf("scheduler: %w: the identity has %d bytes; give 1 to %d", ErrInvalidOption, len(s.identity), maxIdentity)
	case s.maxRuns < 0:
		return s, fmt.Errorf("scheduler: %w: limit of %d runs is negative; 0 sets none", ErrInvalidOption, s.maxRuns)
	case s.drainTimeout < 0:
		return s, fmt.Errorf("scheduler: %w: drain timeout %v is negative; 0 ends runs at once", ErrInvalidOption, s.drainTimeout)
	}
	if err := s.job.validate(); err != nil {
		return s, fmt.Errorf("scheduler: %w", err)
	}
	return s, nil
}

const (
	maxIdentity    = 128 // keeps the register small
	maxMaxAttempts = 1000
	maxJitter      = 24 * time.Hour
)

func (js *jobSettings) validate() error {
	switch {
	case js.location == nil:
		return fmt.Errorf("%w: the location is nil; give one, such as time.UTC", ErrInvalidOption)
	case js.timeout <= 0:
		return fmt.Errorf("%w: timeout %v is not positive; every run needs a bound", ErrInvalidOption, js.timeout)
	case js.startDeadline <= 0:
		return fmt.Errorf("%w: start deadline %v is not positive; no tick could ever be started", ErrInvalidOption, js.startDeadline)
	case js.ttl < redlock.MinTTL:
		return fmt.Errorf("%w: TTL %v is below %v", ErrInvalidOption, js.ttl, redlock.MinTTL)
	case js.catchUp < 0:
		return fmt.Errorf("%w: catch-up window %v is negative; MisfireSkip() runs nothing late", ErrInvalidOption, js.catchUp)
	case js.overlap < OverlapSkip || js.overlap > OverlapAllow:
		return fmt.Errorf("%w: unknown overlap policy %d", ErrInvalidOption, js.overlap)
	case js.gap != GapRunAfter && js.gap != GapSkip || js.fold != FoldOnce && js.fold != FoldTwice:
		return fmt.Errorf("%w: unknown DST policy (%d, %d)", ErrInvalidOption, js.gap, js.fold)
	case js.maxAttempts < 1 || js.maxAttempts > maxMaxAttempts:
		return fmt.Errorf("%w: %d attempts are not between 1 (at most once) and %d", ErrInvalidOption, js.maxAttempts, maxMaxAttempts)
	case js.jitter < 0 || js.jitter > maxJitter:
		return fmt.Errorf("%w: jitter %v is not between 0 and %v", ErrInvalidOption, js.jitter, maxJitter)
	case js.concurrency < 1 || js.concurrency > maxOpen:
		return fmt.Errorf("%w: concurrency of %d is not between 1 and %d", ErrInvalidOption, js.concurrency, maxOpen)
	}
	size := 0
	for k, v := range js.labels {
		size += len(k) + len(v)
	}
	if size > MaxLabels {
		return fmt.Errorf("%w: the labels have %d bytes, the limit is %d", ErrInvalidOption, size, MaxLabels)
	}
	return js.misfire.validate()
}

func (js jobSettings) with(opts []JobOption) (jobSettings, error) {
	for _, o := range opts {
		if o == nil {
			return js, fmt.Errorf("%w: a nil JobOption", ErrInvalidOption)
		}
		o.applyJob(&js)
	}
	return js, js.validate()
}

// lease are the options of the job's lease. It is extended at each third of its TTL, so that it
// outlasts the timeout by about one TTL, in which the end of the run is recorded.
func (js *jobSettings) lease() []redlock.LeaseOption {
	extensions := int(js.timeout/(js.ttl.Truncate(time.Millisecond)/3)) + 2
	return []redlock.LeaseOption{redlock.WithTTL(js.ttl), redlock.WithAutoExtend(true), redlock.WithMaxExtensions(extensions)}
}

// systemClock is the machine's clock.
type systemClock struct{ origin time.Time }

func (c systemClock) Now() time.Time         { return time.Now() }
func (c systemClock) Elapsed() time.Duration { return time.Since(c.origin) }

func defaultIdentity() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	return host + ":" + strconv.Itoa(os.Getpid())
}
