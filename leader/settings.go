package leader

import (
	"fmt"
	"log/slog"
	"math"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel"

	"github.com/quorate/quorate/redlock"
)

// stepsPerTTL is how many steps of the order of candidates make a TTL.
const stepsPerTTL = 16

func newSettings(opts []Option) (settings, error) {
	s := settings{ttl: DefaultTTL, maxTerm: DefaultTerm, stopGrace: DefaultStopGrace}
	for _, o := range opts {
		if o == nil {
			return s, fmt.Errorf("%w: a nil Option", redlock.ErrInvalidOption)
		}
		o.apply(&s)
	}
	if s.ttl < redlock.MinTTL { // before it is divided by
		return s, fmt.Errorf("%w: %v is below %v", redlock.ErrTTLTooShort, s.ttl, redlock.MinTTL)
	}
	if s.resignPause == nil {
		s.resignPause = &s.ttl
	}
	if s.checkEvery == 0 {
		s.checkEvery = s.ttl / 4
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
	switch {
	case *s.resignPause < 0:
		return fmt.Errorf("%w: pause of %v after Resign is negative; 0 sets none", redlock.ErrInvalidOption, *s.resignPause)
	case s.maxTerm <= 0:
		return fmt.Errorf("%w: a term of at most %v could never begin; leave WithMaxTerm out for %v", redlock.ErrInvalidOption, s.maxTerm, DefaultTerm)
	case s.stopGrace <= 0:
		return fmt.Errorf("%w: no function returns within %v; leave WithStopGrace out for %v", redlock.ErrInvalidOption, s.stopGrace, DefaultStopGrace)
	case s.checked && s.check == nil:
		return fmt.Errorf("%w: the health check is nil; leave WithHealthCheck out for none", redlock.ErrInvalidOption)
	case s.checkEvery < time.Millisecond:
		return fmt.Errorf("%w: a health check every %v is too often; the least is 1ms, and 0 sets a quarter of the TTL", redlock.ErrInvalidOption, s.checkEvery)
	case s.priority < 0 || s.priority > MaxPriority:
		return fmt.Errorf("%w: priority %d is not between 0, which comes first, and %d", redlock.ErrInvalidOption, s.priority, MaxPriority)
	case len(s.address) > MaxAddressLength:
		return fmt.Errorf("%w: the address has %d bytes, the limit is %d", redlock.ErrInvalidOption, len(s.address), MaxAddressLength)
	case !utf8.ValidString(s.address):
		return fmt.Errorf("%w: the address %q is not UTF-8", redlock.ErrInvalidOption, s.address)
	}
	if s.identity != nil {
		if err := validIdentity(*s.identity); err != nil {
			return fmt.Errorf("%w; leave WithIdentity out for the Locker's", err)
		}
	}
	return s.validateLabels()
}

func validIdentity(id string) error {
	switch {
	case id == "":
		return fmt.Errorf("%w: the identity is empty", redlock.ErrInvalidOption)
	case len(id) > MaxIdentityLength:
		return fmt.Errorf("%w: the identity has %d bytes, the limit is %d", redlock.ErrInvalidOption, len(id), MaxIdentityLength)
	case !utf8.ValidString(id):
		return fmt.Errorf("%w: the identity %q is not UTF-8", redlock.ErrInvalidOption, id)
	}
	return nil
}

func (s *settings) validateLabels() error {
	if len(s.labels) > MaxLabels {
		return fmt.Errorf("%w: %d labels, the limit is %d", redlock.ErrInvalidOption, len(s.labels), MaxLabels)
	}
	size := 0
	for label, value := range s.labels {
		size += len(label) + len(value)
		switch {
		case label == "":
			return fmt.Errorf("%w: a label has no name; its value is %.64q", redlock.ErrInvalidOption, value)
		case !utf8.ValidString(label) || !utf8.ValidString(value):
			return fmt.Errorf("%w: the label %.64q or its value %.64q is not UTF-8", redlock.ErrInvalidOption, label, value)
		}
	}
	if size > MaxLabelsSize {
		return fmt.Errorf("%w: the labels have %d bytes, the limit is %d; publish a reference to what is larger", redlock.ErrInvalidOption, size, MaxLabelsSize)
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
		redlock.WithMaxExtensions(s.extensions()),
		redlock.WithMaxAttempts(0),
	}
}

// extensions is how many a lease needs that covers a term, and what its function takes to return.
func (s *settings) extensions() int {
	whole := s.maxTerm + s.stopGrace
	if whole < 0 { // more than a Duration holds
		whole = math.MaxInt64
	}
	return int(min(whole/(s.ttl/3)+1, math.MaxInt32))
}

// step is how much later each place in the order of candidates stands.
func (s *settings) step() time.Duration { return s.ttl / stepsPerTTL }

// heirsTime is how long others give way to one whom the last leader has named: enough for wake-ups
// and some rounds, and little enough not to matter if that one is dead.
func (s *settings) heirsTime() time.Duration { return s.ttl / 4 }
