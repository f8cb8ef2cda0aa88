package redlock

import (
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/internal/quorum"
)

// Defaults and limits.
const (
	DefaultTTL           = 8 * time.Second
	DefaultMaxTTL        = 10 * time.Second
	DefaultNodeTimeout   = 500 * time.Millisecond
	DefaultFenceTTL      = 24 * time.Hour
	DefaultMaxExtensions = 1000
	DefaultKeyPrefix     = "quorate:"

	// MinTTL is the shortest TTL: below it, scheduling noise alone would end leases.
	MinTTL = 10 * time.Millisecond
	// MaxStateSize is the largest state of a lease, in bytes.
	MaxStateSize = 8 << 10
	// MaxIdentityLength is the longest identity, in bytes: it is part of every step.
	MaxIdentityLength = 512
)

// longestTTL keeps sums of times far from what a Duration holds.
const longestTTL = 365 * 24 * time.Hour

// An Option is a setting of a Locker.
type Option interface{ apply(*settings) }

// A LeaseOption is a setting of one lease. Given to New it is the default of all leases.
type LeaseOption interface {
	Option
	applyLease(*leaseSettings)
}

type settings struct {
	maxTTL           time.Duration
	nodeTimeout      time.Duration
	fenceTTL         time.Duration
	keyPrefix        string
	identity         string
	trustPersistence bool
	clock            Clock
	logger           *slog.Logger
	tracers          trace.TracerProvider
	meters           metric.MeterProvider
	metricName       func(string) string // or nil
	observer         func(Event)
	lease            leaseSettings
}

type leaseSettings struct {
	ttl           time.Duration
	margin        time.Duration
	minValidity   time.Duration
	maxExtensions int
	maxAttempts   int
	autoExtend    extension
}

// extension is off for Acquire and on for Do unless an option says otherwise.
type extension int8

const (
	extensionUnset extension = iota
	extensionOn
	extensionOff
)

type option func(*settings)

func (o option) apply(s *settings) { o(s) }

type leaseOption func(*leaseSettings)

func (o leaseOption) apply(s *settings)            { o(&s.lease) }
func (o leaseOption) applyLease(ls *leaseSettings) { o(ls) }

// WithTTL sets how long the nodes keep a lease that is not extended. Default 8 s, at least
// MinTTL, at most the maximum TTL. A dead holder is replaced after at most this time.
func WithTTL(d time.Duration) LeaseOption {
	return leaseOption(func(s *leaseSettings) { s.ttl = d })
}

// WithMargin ends the lease's context d before the validity ends, so that work can wind down
// while it is still covered. Default 0.
func WithMargin(d time.Duration) LeaseOption {
	return leaseOption(func(s *leaseSettings) { s.margin = d })
}

// WithMinValidity refuses a lease that was won with less validity left. Default a tenth of the TTL.
func WithMinValidity(d time.Duration) LeaseOption {
	return leaseOption(func(s *leaseSettings) { s.minValidity = d })
}

// WithAutoExtend switches automatic extension, at a third of the TTL, on or off. The default is
// on for Do, where the end of the function ends the lease, and off for Acquire, where a lease
// that was forgotten must end by itself.
func WithAutoExtend(on bool) LeaseOption {
	return leaseOption(func(s *leaseSettings) {
		s.autoExtend = extensionOff
		if on {
			s.autoExtend = extensionOn
		}
	})
}

// WithMaxExtensions bounds how often one lease is extended, by hand or automatically. Default
// 1,000. The Redlock text demands a bound: "the maximum number of lock reacquisition attempts
// should be limited, otherwise one of the liveness properties is violated."
func WithMaxExtensions(n int) LeaseOption {
	return leaseOption(func(s *leaseSettings) { s.maxExtensions = n })
}

// WithMaxAttempts bounds how often Acquire asks the nodes. Default 0: until its context ends.
func WithMaxAttempts(n int) LeaseOption {
	return leaseOption(func(s *leaseSettings) { s.maxAttempts = n })
}

// WithMaxTTL sets the longest TTL that any client of the fleet uses. Default 10 s, at most a year.
// A node that restarted does not count until it has been up for this long, so it must be the same
// in all clients, and a fresh fleet serves only after this time.
func WithMaxTTL(d time.Duration) Option {
	return option(func(s *settings) { s.maxTTL = d })
}

// WithNodeTimeout sets how long a node may take to answer before it is suspect. Default 500 ms,
// or a quarter of the TTL if that is less. It does not slow anything down while a quorum answers.
func WithNodeTimeout(d time.Duration) Option {
	return option(func(s *settings) { s.nodeTimeout = d })
}

// WithFenceTTL sets how long a name's fence and state outlive its last use. Default 24 h, at
// least twice the maximum TTL.
func WithFenceTTL(d time.Duration) Option {
	return option(func(s *settings) { s.fenceTTL = d })
}

// WithKeyPrefix sets what stands before a name in its keys. Default "quorate:". With "" the
// lock key is the bare name, as other Redlock clients use it: both then exclude each other.
func WithKeyPrefix(prefix string) Option {
	return option(func(s *settings) { s.keyPrefix = prefix })
}

// WithIdentity sets the readable part of the owner: UTF-8, at most MaxIdentityLength bytes. Whoever
// asks for a name that is taken is told it. Default "host:pid".
func WithIdentity(identity string) Option {
	return option(func(s *settings) { s.identity = identity })
}

// WithTrustPersistence switches the restart rule off: for fleets that lose nothing in a crash,
// with appendonly yes and appendfsync always on every node.
func WithTrustPersistence() Option {
	return option(func(s *settings) { s.trustPersistence = true })
}

// WithClock sets the clock, for tests. Default: the system's.
func WithClock(c Clock) Option {
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
		maxTTL:    DefaultMaxTTL,
		fenceTTL:  DefaultFenceTTL,
		keyPrefix: DefaultKeyPrefix,
		identity:  defaultIdentity(),
		lease:     leaseSettings{ttl: DefaultTTL, maxExtensions: DefaultMaxExtensions},
	}
	for _, o := range opts {
		if o == nil {
			return s, fmt.Errorf("redlock: %w: a nil Option", ErrInvalidOption)
		}
		o.apply(&s)
	}
	if s.nodeTimeout == 0 {
		s.nodeTimeout = min(DefaultNodeTimeout, s.lease.ttl/4)
	}
	if s.clock == nil {
		s.clock = newSystemClock()
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

func (s *settings) validate() error {
	switch {
	case s.maxTTL < MinTTL:
		return fmt.Errorf("redlock: %w: maximum TTL %v is below %v", ErrInvalidOption, s.maxTTL, MinTTL)
	case s.maxTTL > longestTTL:
		return fmt.Errorf("redlock: %w: maximum TTL %v is above %v; a node that restarted would not count for as long", ErrInvalidOption, s.maxTTL, longestTTL)
	case s.fenceTTL < 2*s.maxTTL:
		return fmt.Errorf("redlock: %w: fence TTL %v is below twice the maximum TTL %v; a fence must outlive every lease", ErrInvalidOption, s.fenceTTL, s.maxTTL)
	case s.identity == "":
		return fmt.Errorf("redlock: %w: the identity is empty", ErrInvalidOption)
	case len(s.identity) > MaxIdentityLength:
		return fmt.Errorf("redlock: %w: the identity has %d bytes, the limit is %d", ErrInvalidOption, len(s.identity), MaxIdentityLength)
	case !utf8.ValidString(s.identity):
		return fmt.Errorf("redlock: %w: the identity %q is not UTF-8", ErrInvalidOption, s.identity)
	}
	if _, err := keysOf(s.keyPrefix, "name"); err != nil {
		return fmt.Errorf("redlock: %w: key prefix %.40q has a '}' without a hash tag {…} before it, so the two keys of a name could not share a hash slot", ErrInvalidOption, s.keyPrefix)
	}
	if err := s.lease.validate(s.maxTTL); err != nil {
		return err
	}
	if s.nodeTimeout < time.Millisecond || s.nodeTimeout > s.lease.ttl/2 {
		return fmt.Errorf("redlock: %w: node timeout %v is not between 1ms and half the TTL %v; it must be small compared to the TTL", ErrInvalidOption, s.nodeTimeout, s.lease.ttl)
	}
	return nil
}

func (ls *leaseSettings) validate(maxTTL time.Duration) error {
	validity := quorum.Validity(ls.ttl.Truncate(time.Millisecond), 0) // as the nodes count
	switch {
	case ls.ttl < MinTTL:
		return fmt.Errorf("redlock: %w: %v is below %v", ErrTTLTooShort, ls.ttl, MinTTL)
	case ls.ttl > maxTTL:
		return fmt.Errorf("redlock: %w: %v is above the fleet's maximum of %v; raise WithMaxTTL in all clients, or use a shorter TTL and let it be extended", ErrTTLTooLong, ls.ttl, maxTTL)
	case ls.margin < 0 || ls.margin > ls.ttl/2:
		return fmt.Errorf("redlock: %w: margin %v is not between 0 and half the TTL %v", ErrInvalidOption, ls.margin, ls.ttl)
	case ls.minValidity < 0 || ls.minValidity >= validity:
		return fmt.Errorf("redlock: %w: minimum validity %v can never be reached with TTL %v, which leaves at most %v", ErrInvalidOption, ls.minValidity, ls.ttl, validity)
	case ls.maxExtensions < 0:
		return fmt.Errorf("redlock: %w: maximum of %d extensions is negative; 0 allows none", ErrInvalidOption, ls.maxExtensions)
	case ls.maxAttempts < 0:
		return fmt.Errorf("redlock: %w: maximum of %d attempts is negative; 0 sets no limit", ErrInvalidOption, ls.maxAttempts)
	}
	return nil
}

// with gives the settings of one lease.
func (ls leaseSettings) with(opts []LeaseOption, maxTTL time.Duration) (leaseSettings, error) {
	for _, o := range opts {
		if o == nil {
			return ls, fmt.Errorf("redlock: %w: a nil LeaseOption", ErrInvalidOption)
		}
		o.applyLease(&ls)
	}
	if err := ls.validate(maxTTL); err != nil {
		return ls, err
	}
	if ls.minValidity == 0 {
		ls.minValidity = ls.ttl / 10
	}
	ls.ttl = ls.ttl.Truncate(time.Millisecond) // as the nodes count
	// The context must live for a moment at least.
	ls.minValidity = max(ls.minValidity, ls.margin+time.Millisecond)
	return ls, nil
}
