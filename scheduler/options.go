package scheduler

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/redlock"
)

// Defaults.
const (
	DefaultTimeout       = time.Hour
	DefaultStartDeadline = time.Minute
	DefaultDrainTimeout  = 30 * time.Second
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

// WithStartDeadline sets how long after its time a tick may still be started, when nodes were
// down, a holder had crashed, or the machine slept. The time of the next tick ends it as well.
// Default 1 min.
func WithStartDeadline(d time.Duration) JobOption {
	return jobOption(func(s *jobSettings) { s.startDeadline = d })
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
			timeout: DefaultTimeout, startDeadline: DefaultStartDeadline,
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
	case s.drainTimeout < 0:
		return s, fmt.Errorf("scheduler: %w: drain timeout %v is negative; 0 ends runs at once", ErrInvalidOption, s.drainTimeout)
	}
	if err := s.job.validate(); err != nil {
		return s, fmt.Errorf("scheduler: %w", err)
	}
	return s, nil
}

// maxIdentity keeps the register small.
const maxIdentity = 512

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
	}
	return nil
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
