package gocronlock

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/redlock"
)

// Defaults.
const (
	DefaultInterval = time.Second
	DefaultTimeout  = time.Hour
	DefaultPrefix   = "gocron/"
)

// minInterval is far below what any crontab has, and above what clocks and schedulers blur.
const minInterval = 50 * time.Millisecond

// An Option is a setting of a Locker.
type Option func(*settings)

type settings struct {
	interval time.Duration
	ttl      time.Duration
	timeout  time.Duration
	prefix   string
	now      func() time.Time
}

// WithInterval sets the shortest time between two ticks of the jobs that use the Locker: two that
// ask less than three quarters of it apart ask for the same tick. It has to be the same in all
// replicas. Default 1 s, at least 50 ms.
func WithInterval(d time.Duration) Option { return func(s *settings) { s.interval = d } }

// WithTTL sets the TTL of the leases, which are extended while a run lasts: when a replica dies in
// a run, no other runs the job for at most this long. Default redlock.DefaultTTL.
func WithTTL(d time.Duration) Option { return func(s *settings) { s.ttl = d } }

// WithTimeout sets for how long a lease is extended: a run that takes longer loses it, so that a
// function which hangs does not stop the job everywhere for ever. The run itself is not ended: gocron
// does not allow that. Default 1 h.
func WithTimeout(d time.Duration) Option { return func(s *settings) { s.timeout = d } }

// WithPrefix sets what stands before a job's name in the name of its lease. Default "gocron/".
func WithPrefix(prefix string) Option { return func(s *settings) { s.prefix = prefix } }

// WithClock sets the wall clock, for tests. It has to be the one that gocron goes by. Default
// time.Now.
func WithClock(now func() time.Time) Option { return func(s *settings) { s.now = now } }

func newSettings(opts []Option) (settings, error) {
	s := settings{
		interval: DefaultInterval, ttl: redlock.DefaultTTL, timeout: DefaultTimeout, prefix: DefaultPrefix, now: time.Now,
	}
	for _, o := range opts {
		if o == nil {
			return s, fmt.Errorf("gocronlock: %w: a nil Option", redlock.ErrInvalidOption)
		}
		o(&s)
	}
	switch {
	case s.interval < minInterval:
		return s, fmt.Errorf("gocronlock: %w: interval %v is below %v", redlock.ErrInvalidOption, s.interval, minInterval)
	case s.ttl < redlock.MinTTL: // before it is divided by
		return s, fmt.Errorf("gocronlock: %w: %v is below %v", redlock.ErrTTLTooShort, s.ttl, redlock.MinTTL)
	case s.timeout <= 0:
		return s, fmt.Errorf("gocronlock: %w: timeout %v is not positive; a lease needs a bound", redlock.ErrInvalidOption, s.timeout)
	case s.now == nil:
		return s, fmt.Errorf("gocronlock: %w: the clock is nil", redlock.ErrInvalidOption)
	}
	return s, nil
}

// lease are the options of a lease. It is extended at each third of its TTL.
func (s *settings) lease() []redlock.LeaseOption {
	extensions := int(s.timeout/(s.ttl.Truncate(time.Millisecond)/3)) + 1
	return []redlock.LeaseOption{redlock.WithTTL(s.ttl), redlock.WithAutoExtend(true), redlock.WithMaxExtensions(extensions)}
}

// patience is how long a replica waits for a run that goes on, or for a dead replica's lease: no
// longer than gocron can wait before the next tick comes due.
func (s *settings) patience() time.Duration { return min(s.interval/2, s.ttl+s.ttl/4) }
