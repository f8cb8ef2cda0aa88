package leader

import (
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/redlock"
)

// Defaults and limits.
const (
	// DefaultTTL is the TTL of a leader's lease.
	DefaultTTL = redlock.DefaultTTL
	// DefaultTerm is about how long a term lasts at most; see WithMaxExtensions.
	DefaultTerm = 24 * time.Hour
	// MaxIdentityLength is the longest identity, in bytes.
	MaxIdentityLength = 512
)

// An Option is a setting of an Elector.
type Option interface{ apply(*settings) }

type option func(*settings)

func (o option) apply(s *settings) { o(s) }

type settings struct {
	identity      *string // nil: the Locker's
	ttl           time.Duration
	margin        time.Duration
	maxExtensions *int           // nil: for DefaultTerm
	resignPause   *time.Duration // nil: the TTL
	logger        *slog.Logger
	tracers       trace.TracerProvider
	meters        metric.MeterProvider
}

// WithIdentity sets the name under which this candidate is known when it leads: UTF-8, at most
// MaxIdentityLength bytes. Two candidates may have the same. Default: the Locker's identity,
// which is "host:pid" unless redlock.WithIdentity says otherwise.
func WithIdentity(identity string) Option {
	return option(func(s *settings) { s.identity = &identity })
}

// WithTTL sets how long the nodes keep a leader's lease that is not extended: a crashed leader
// is replaced after at most this time. Default 8 s, at least redlock.MinTTL, at most the Locker's
// maximum TTL. It is extended at a third of the TTL.
//
// What the Locker was told of leases in general (redlock.WithTTL and other LeaseOptions) does
// not hold for terms.
func WithTTL(d time.Duration) Option {
	return option(func(s *settings) { s.ttl = d })
}

// WithMargin ends the context of a term d before its validity does, so that the leader can wind
// down while nobody else can lead. Default 0, at most half the TTL.
func WithMargin(d time.Duration) Option {
	return option(func(s *settings) { s.margin = d })
}

// WithMaxExtensions bounds one term: its lease is extended at most n times, each time for a
// third of the TTL, so that a leader that is alive and stuck does not lead for ever. Then its
// context ends and the election is open again, to this elector as well. 0 allows no extension: a
// term lasts one TTL. Default: as many as make DefaultTerm, 24 hours; that is 32,400 with the
// default TTL.
func WithMaxExtensions(n int) Option {
	return option(func(s *settings) { s.maxExtensions = &n })
}

// WithResignPause sets how long the elector stands back after Resign. Default: one TTL, within
// which every live candidate asks for the lease at least once, also one that missed the wake-up.
// With 0 it is a candidate again at once, and may win against the others.
func WithResignPause(d time.Duration) Option {
	return option(func(s *settings) { s.resignPause = &d })
}

// WithLogger sets where terms, and what went wrong with them, are reported. Default
// slog.Default().
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
	s := settings{ttl: DefaultTTL}
	for _, o := range opts {
		if o == nil {
			return s, fmt.Errorf("%w: a nil Option", redlock.ErrInvalidOption)
		}
		o.apply(&s)
	}
	if s.ttl < redlock.MinTTL { // before it is divided by
		return s, fmt.Errorf("%w: %v is below %v", redlock.ErrTTLTooShort, s.ttl, redlock.MinTTL)
	}
	if s.maxExtensions == nil {
		n := int((3*DefaultTerm + s.ttl - 1) / s.ttl)
		s.maxExtensions = &n
	}
	if s.resignPause == nil {
		s.resignPause = &s.ttl
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
	return s, s.validate()
}

// validate checks what redlock does not: Locker.Validate does the rest.
func (s *settings) validate() error {
	if *s.resignPause < 0 {
		return fmt.Errorf("%w: pause of %v after Resign is negative; 0 sets none", redlock.ErrInvalidOption, *s.resignPause)
	}
	if s.identity == nil {
		return nil
	}
	switch id := *s.identity; {
	case id == "":
		return fmt.Errorf("%w: the identity is empty; leave WithIdentity out for the Locker's", redlock.ErrInvalidOption)
	case len(id) > MaxIdentityLength:
		return fmt.Errorf("%w: the identity has %d bytes, the limit is %d", redlock.ErrInvalidOption, len(id), MaxIdentityLength)
	case !utf8.ValidString(id):
		return fmt.Errorf("%w: the identity %q is not UTF-8", redlock.ErrInvalidOption, id)
	}
	return nil
}

// lease gives the settings of a term's lease. All are given, so that the Locker's defaults, which
// are for other leases, do not mix with them.
func (s *settings) lease() []redlock.LeaseOption {
	return []redlock.LeaseOption{
		redlock.WithTTL(s.ttl),
		redlock.WithMargin(s.margin),
		redlock.WithMinValidity(0),
		redlock.WithAutoExtend(true),
		redlock.WithMaxExtensions(*s.maxExtensions),
		redlock.WithMaxAttempts(0),
	}
}
