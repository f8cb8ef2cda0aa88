package leader

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/redlock"
)

// Defaults and limits.
const (
	// DefaultTTL is the TTL of a leader's lease.
	DefaultTTL = redlock.DefaultTTL
	// DefaultTerm is how long a term lasts at most; see WithMaxTerm.
	DefaultTerm = 24 * time.Hour
	// DefaultStopGrace is how long the leading function may take to return.
	DefaultStopGrace = 10 * time.Second
	// MaxIdentityLength is the longest identity, in bytes.
	MaxIdentityLength = 512
	// MaxAddressLength is the longest address, in bytes.
	MaxAddressLength = 255
	// MaxLabels is how many labels a candidate may have, and MaxLabelsSize how many bytes their
	// names and values may have together.
	MaxLabels     = 16
	MaxLabelsSize = 1 << 10
	// MaxStateSize is the largest state of a term, in bytes: what a lease may carry, without room
	// for what else is published of a term.
	MaxStateSize = 3 << 10
	// MaxPriority is the last place in the order of candidates.
	MaxPriority = 100
)

// An Option is a setting of an Elector.
type Option interface{ apply(*settings) }

type option func(*settings)

func (o option) apply(s *settings) { o(s) }

type settings struct {
	identity    *string // nil: the Locker's
	address     string
	labels      map[string]string
	ttl         time.Duration
	margin      time.Duration
	maxTerm     time.Duration
	stopGrace   time.Duration
	resignPause *time.Duration // nil: the TTL
	priority    int
	eligible    func() bool
	check       func(context.Context) error
	checkEvery  time.Duration
	checked     bool // WithHealthCheck was given
	observer    func(Event)
	logger      *slog.Logger
	tracers     trace.TracerProvider
	meters      metric.MeterProvider
}

// WithIdentity sets the name under which this candidate is known when it leads: UTF-8, at most
// MaxIdentityLength bytes. Two candidates may have the same. Default: the Locker's identity,
// which is "host:pid" unless redlock.WithIdentity says otherwise.
func WithIdentity(identity string) Option {
	return option(func(s *settings) { s.identity = &identity })
}

// WithAddress sets where others reach this candidate when it leads: Term.Address. UTF-8, at most
// MaxAddressLength bytes; nothing looks into it. Default: none.
func WithAddress(address string) Option {
	return option(func(s *settings) { s.address = address })
}

// WithLabels sets what else a leader says of itself, for instance its version or zone:
// Term.Labels. UTF-8, at most MaxLabels of them, which together have at most MaxLabelsSize bytes.
func WithLabels(labels map[string]string) Option {
	labels = maps.Clone(labels)
	return option(func(s *settings) { s.labels = labels })
}

// WithTTL sets how long the nodes keep a leader's lease that is not extended: a crashed leader
// is replaced after at most this time. Default 8 s, at least redlock.MinTTL, at most the Locker's
// maximum TTL. It is extended at a third of the TTL. All candidates should have the same.
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

// WithMaxTerm bounds one term, so that a leader that is alive and of no use does not lead for ever:
// after d its context ends with ErrTermLimit, and when the function has returned the election is
// open again, to this elector as well. Default DefaultTerm, 24 hours.
//
// The lease follows: it is extended for as long as the term may last and the function may then take
// to return (WithStopGrace), and by a TTL at most beyond that.
func WithMaxTerm(d time.Duration) Option {
	return option(func(s *settings) { s.maxTerm = d })
}

// WithStopGrace sets how long the leading function may take to return when its context has ended.
// After that it is reported: in the log, at error level and again at growing intervals, by the metric
// quorate.leader.stuck, to WithObserver, and by Healthz. Nothing else happens: while the function
// runs, the lease is not released and this elector is no candidate. Default 10 s.
func WithStopGrace(d time.Duration) Option {
	return option(func(s *settings) { s.stopGrace = d })
}

// WithResignPause sets how long the elector stands back after Resign and Transfer. Default: one TTL,
// within which every live candidate asks for the lease at least once, also one that missed the
// wake-up; less if Transfer names this candidate meanwhile. With 0 it is a candidate again at once, and
// may win against the others.
func WithResignPause(d time.Duration) Option {
	return option(func(s *settings) { s.resignPause = &d })
}

// WithHealthCheck has check asked every so often, and before the elector stands for the first
// time: while it returns an error, the elector is no candidate, and if it leads, its term ends with
// ErrUnhealthy and that error as the cause. It should look at what leading takes, such as the
// database, so that a replica that can only keep the lease does not keep the office.
//
// A check that has not returned when the next is due counts as failed, until it has, and so does one
// that panics; its context ends then. It never holds up the end of a term, but Run waits for it.
// With every 0, it is asked four times in a TTL.
func WithHealthCheck(check func(ctx context.Context) error, every time.Duration) Option {
	return option(func(s *settings) { s.check, s.checkEvery, s.checked = check, every, true })
}

// WithEligible has eligible asked, as often as a health check is: while it returns false, the
// elector is no candidate. Unlike a failing health check it does not end a term. It must return at
// once. Without it, the elector is a candidate as long as Run runs.
func WithEligible(eligible func() bool) Option {
	return option(func(s *settings) { s.eligible = eligible })
}

// WithPriority sets this candidate's place in the order of candidates, as for mail servers: those
// with 0, the default, come first, and one with n stands only when the office has been vacant for n
// steps, of a 16th of the TTL each; at most MaxPriority. Nobody who leads is displaced: who comes back
// with a higher place waits for the next vacancy. Each step makes a failover that needs it slower.
func WithPriority(n int) Option {
	return option(func(s *settings) { s.priority = n })
}

// WithObserver has observe called with each Event, one after the other. It is called in line, so it
// must return soon, and must not wait for the elector. Events are of what has happened to this elector;
// for those of the whole election, see Elector.Watch.
func WithObserver(observe func(Event)) Option {
	return option(func(s *settings) { s.observer = observe })
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
