package fencing

import (
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/redlock"
)

// Defaults and limits.
const (
	DefaultHoldLimit = time.Minute
	DefaultMaxBatch  = 100 // items
	DefaultKeyPrefix = "quorate:gate:"
	DefaultTable     = "quorate_fence"
	DefaultColumn    = "fence"

	// MinFenceTTL is the shortest TTL of a fence at a gate.
	MinFenceTTL = time.Minute
)

// A GuardOption is a setting of a Guard.
type GuardOption interface{ applyGuard(*guardSettings) }

// A RedisOption is a setting of a RedisGate.
type RedisOption interface{ applyRedis(*redisSettings) }

// A SQLOption is a setting of a SQLGate or a SQLTable.
type SQLOption interface{ applySQL(*sqlSettings) }

// A BatchOption is a setting of a Batcher.
type BatchOption interface{ applyBatch(*batchSettings) }

// An Option is a setting of a guard and of the gates.
type Option interface {
	GuardOption
	RedisOption
	SQLOption
}

type guardSettings struct {
	waitLimit  time.Duration
	holdLimit  time.Duration
	queueLimit int
	late       bool // the function admits
	lease      []redlock.LeaseOption
	tracers    trace.TracerProvider
	meters     metric.MeterProvider
}

type batchSettings struct{ max int }

type redisSettings struct {
	fenceTTL  time.Duration
	keyPrefix string
	meters    metric.MeterProvider
}

type sqlSettings struct {
	table  string
	column string
	meters metric.MeterProvider
}

type guardOption func(*guardSettings)

func (o guardOption) applyGuard(s *guardSettings) { o(s) }

type batchOption func(*batchSettings)

func (o batchOption) applyBatch(s *batchSettings) { o(s) }

type redisOption func(*redisSettings)

func (o redisOption) applyRedis(s *redisSettings) { o(s) }

type sqlOption func(*sqlSettings)

func (o sqlOption) applySQL(s *sqlSettings) { o(s) }

type meterOption struct{ meters metric.MeterProvider }

func (o meterOption) applyGuard(s *guardSettings) { s.meters = o.meters }
func (o meterOption) applyRedis(s *redisSettings) { s.meters = o.meters }
func (o meterOption) applySQL(s *sqlSettings)     { s.meters = o.meters }

// WithWaitLimit bounds how long Do waits for a resource; then it returns ErrWaitLimit. Default
// 0: as long as its context lasts.
func WithWaitLimit(d time.Duration) GuardOption {
	return guardOption(func(s *guardSettings) { s.waitLimit = d })
}

// WithHoldLimit bounds how long the function may take, admission included. At the limit its
// context ends, with a cause that wraps ErrHoldLimit. It is covered for as long as the lease was
// valid at that moment, to wind down; then the lease is released, whether or not the function
// has returned, and the next holder's token shuts it out at the gate.
//
// Default one minute. With 0 only redlock.WithMaxExtensions bounds it.
func WithHoldLimit(d time.Duration) GuardOption {
	return guardOption(func(s *guardSettings) { s.holdLimit = d })
}

// WithQueueLimit bounds how many callers of this guard wait for one resource behind the first of
// them, who holds it or asks the nodes for it. Who comes when the line is that long is told
// ErrQueueFull at once, so that a slow resource does not fill the process with waiting callers.
//
// Default 0: no limit. Who does not want to wait at all uses TryDo.
func WithQueueLimit(n int) GuardOption {
	return guardOption(func(s *guardSettings) { s.queueLimit = n })
}

// WithoutAdmission has the guard not ask the gate before the function runs, which saves a round trip for
// functions that begin at the gate themselves: with a write of the RedisGate, or with SQLGate.Admit as
// the first statement of their transaction. What they read before that may be changed by an older
// holder until then, so they must decide by what they read behind it, or leave the decision to the write
// (IncrBy with its floor, a script).
func WithoutAdmission() GuardOption {
	return guardOption(func(s *guardSettings) { s.late = true })
}

// WithLease sets options of the leases that a guard acquires, such as redlock.WithTTL. Default:
// those of the Locker, and automatic extension.
func WithLease(opts ...redlock.LeaseOption) GuardOption {
	return guardOption(func(s *guardSettings) { s.lease = append(s.lease, opts...) })
}

// WithMaxBatch bounds how many items a batch has, and with it how long other processes wait for a
// resource that this one wants a lot from. Default 100.
func WithMaxBatch(n int) BatchOption {
	return batchOption(func(s *batchSettings) { s.max = n })
}

// WithFenceTTL sets how long the fence of a resource outlives the last token that was admitted;
// at least MinFenceTTL. A holder that is paused for longer than this finds no fence, and is
// admitted: choose a time in which such a process is surely gone, a day or more.
//
// Default 0: fences stay, about a hundred bytes for each resource, as long as the data.
func WithFenceTTL(d time.Duration) RedisOption {
	return redisOption(func(s *redisSettings) { s.fenceTTL = d })
}

// WithKeyPrefix sets what stands before a resource in the key of its fence; it must have no
// braces. Default "quorate:gate:". All that write to the same data must use the same.
func WithKeyPrefix(prefix string) RedisOption {
	return redisOption(func(s *redisSettings) { s.keyPrefix = prefix })
}

// WithTable sets the table of a SQLGate's fences, as table or schema.table. It is quoted, so it is the
// name as the database keeps it: PostgreSQL has what was not quoted in lower case. Default
// "quorate_fence". All that write to the same data must use the same.
func WithTable(name string) SQLOption {
	return sqlOption(func(s *sqlSettings) { s.table = name })
}

// WithColumn sets the column of a SQLTable that holds the fence. Default "fence".
func WithColumn(name string) SQLOption {
	return sqlOption(func(s *sqlSettings) { s.column = name })
}

// WithTracerProvider sets where spans go. Default: the global one.
func WithTracerProvider(p trace.TracerProvider) GuardOption {
	return guardOption(func(s *guardSettings) { s.tracers = p })
}

// WithMeterProvider sets where metrics go. Default: the global one.
func WithMeterProvider(p metric.MeterProvider) Option { return meterOption{p} }

func newGuardSettings(opts []GuardOption) (guardSettings, error) {
	s := guardSettings{holdLimit: DefaultHoldLimit}
	for _, o := range opts {
		if o == nil {
			return s, fmt.Errorf("fencing: %w: a nil GuardOption", redlock.ErrInvalidOption)
		}
		o.applyGuard(&s)
	}
	if s.tracers == nil {
		s.tracers = otel.GetTracerProvider()
	}
	if s.meters == nil {
		s.meters = otel.GetMeterProvider()
	}
	switch {
	case s.waitLimit < 0:
		return s, fmt.Errorf("fencing: %w: wait limit %v is negative; 0 sets none", redlock.ErrInvalidOption, s.waitLimit)
	case s.holdLimit < 0:
		return s, fmt.Errorf("fencing: %w: hold limit %v is negative; 0 sets none", redlock.ErrInvalidOption, s.holdLimit)
	case s.queueLimit < 0:
		return s, fmt.Errorf("fencing: %w: queue limit %d is negative; 0 sets none", redlock.ErrInvalidOption, s.queueLimit)
	}
	for _, o := range s.lease {
		if o == nil {
			return s, fmt.Errorf("fencing: %w: a nil LeaseOption", redlock.ErrInvalidOption)
		}
	}
	return s, nil
}

func newBatchSettings(opts []BatchOption) (batchSettings, error) {
	s := batchSettings{max: DefaultMaxBatch}
	for _, o := range opts {
		if o == nil {
			return s, fmt.Errorf("fencing: batcher: %w: a nil BatchOption", redlock.ErrInvalidOption)
		}
		o.applyBatch(&s)
	}
	if s.max < 1 {
		return s, fmt.Errorf("fencing: batcher: %w: a batch of at most %d; 1 is the least", redlock.ErrInvalidOption, s.max)
	}
	return s, nil
}

func newRedisSettings(opts []RedisOption) (redisSettings, error) {
	s := redisSettings{keyPrefix: DefaultKeyPrefix}
	for _, o := range opts {
		if o == nil {
			return s, fmt.Errorf("fencing: %w: a nil RedisOption", redlock.ErrInvalidOption)
		}
		o.applyRedis(&s)
	}
	if s.meters == nil {
		s.meters = otel.GetMeterProvider()
	}
	switch {
	case s.fenceTTL != 0 && s.fenceTTL < MinFenceTTL:
		return s, fmt.Errorf("fencing: %w: fence TTL %v is below %v; a fence must outlive every paused holder, 0 keeps it", redlock.ErrInvalidOption, s.fenceTTL, MinFenceTTL)
	case s.keyPrefix == "":
		return s, fmt.Errorf("fencing: %w: the key prefix is empty, so that fences could be data", redlock.ErrInvalidOption)
	case strings.ContainsAny(s.keyPrefix, "{}"):
		return s, fmt.Errorf("fencing: %w: key prefix %q has a brace, which would decide the hash slot", redlock.ErrInvalidOption, s.keyPrefix)
	}
	return s, nil
}

func newSQLSettings(opts []SQLOption) (sqlSettings, error) {
	s := sqlSettings{table: DefaultTable, column: DefaultColumn}
	for _, o := range opts {
		if o == nil {
			return s, fmt.Errorf("fencing: %w: a nil SQLOption", redlock.ErrInvalidOption)
		}
		o.applySQL(&s)
	}
	if s.meters == nil {
		s.meters = otel.GetMeterProvider()
	}
	return s, nil
}
