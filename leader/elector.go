package leader

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/quorate/quorate/redlock"
)

// An Elector is one candidate of one election, and an observer of it. Make it with New; it needs
// no closing, only its Run has to end. It is safe for use by many goroutines.
type Elector struct {
	locker    *redlock.Locker
	name      string
	settings  settings
	lease     []redlock.LeaseOption
	telemetry *telemetry

	mu      sync.Mutex
	running bool
	current *tenure // whose function runs; nil otherwise
}

// New makes an Elector for the election with this name. The Locker stays the caller's: end Run
// before it is closed.
//
// Nothing is asked of the nodes. The errors are those of redlock for settings: ErrInvalidOption,
// ErrInvalidName, ErrTTLTooShort and ErrTTLTooLong.
func New(locker *redlock.Locker, name string, opts ...Option) (*Elector, error) {
	if locker == nil {
		return nil, fmt.Errorf("leader: %w: the Locker is nil; make one with redlock.New", redlock.ErrInvalidOption)
	}
	s, err := newSettings(opts)
	if err != nil {
		return nil, fmt.Errorf("leader: elector %.64q: %w", name, err)
	}
	e := &Elector{locker: locker, name: name, settings: s, lease: s.lease()}
	if err := locker.Validate(name, e.lease...); err != nil {
		return nil, fmt.Errorf("leader: elector %.64q: %w", name, err)
	}
	if e.telemetry, err = newTelemetry(&s); err != nil {
		return nil, fmt.Errorf("leader: elector %.64q: create metrics: %w", name, err)
	}
	return e, nil
}

// Run campaigns until it leads, calls lead, and campaigns again when that has returned, until ctx
// ends. See the package documentation for what ends a term, and what follows.
//
// The context that lead is given ends when the lease does, on Resign, and when ctx does;
// context.Cause then gives a *redlock.LeaseError, ErrResigned, or ctx's cause. It carries ctx's
// values, and redlock.LeaseFrom finds the lease in it; its Err looks at the clock and so is right
// at any moment. The lease is released only when lead has returned, so lead must wait for what it
// started.
//
// What lead returns never ends Run: an error is logged, and so is a panic, with its stack.
//
// Run returns nil when ctx ends: that is how it is told to stop, and in an errgroup no failure
// of its own. Otherwise it returns an error: one that wraps redlock.ErrClosed when the Locker is
// closed, another that no further attempt
// mends (redlock.ErrSameServer, redlock.ErrTokensExhausted), ErrRunning when another Run of this
// Elector has not returned. When it returns, all that it started has ended, and the lease is
// released as far as the nodes could be reached.
func (e *Elector) Run(ctx context.Context, lead func(ctx context.Context, term Term) error) error {
	if lead == nil {
		return fmt.Errorf("leader: run %q: %w: the leading function is nil", e.name, redlock.ErrInvalidOption)
	}
	if !e.start() {
		return fmt.Errorf("leader: run %q: %w; make another Elector for a second candidate", e.name, ErrRunning)
	}
	defer e.stop()
	observed, err := e.telemetry.observe(e)
	if err != nil {
		return fmt.Errorf("leader: run %q: register metrics: %w", e.name, err)
	}
	defer func() { _ = observed.Unregister() }()

	retry := newBackoff(e.settings.ttl)
	for ctx.Err() == nil {
		lease, err := e.locker.Acquire(ctx, e.name, e.lease...)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil
		default:
			return fmt.Errorf("leader: run %q: %w", e.name, err) // redlock retries what a retry can mend
		}
		end := e.serve(ctx, lease, lead)
		e.sleep(ctx, e.pause(end, retry))
	}
	return nil
}

func (e *Elector) start() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running {
		return false
	}
	e.running = true
	return true
}

func (e *Elector) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running = false
}

// IsLeader reports whether the leading function runs and the lease under it is valid as of now,
// by the clock: no answer of a node, and no timer, is needed to make it false in time. It may be
// false as soon as it is returned; for writes that matter, use the term's number as a fencing
// token.
func (e *Elector) IsLeader() bool {
	return e.leading() != nil
}

func (e *Elector) leading() *tenure {
	e.mu.Lock()
	t := e.current
	e.mu.Unlock()
	if t == nil || t.lease.Err() != nil {
		return nil
	}
	return t
}

// Resign ends the term: the context of the leading function ends with ErrResigned as its cause.
// Resign waits until the function has returned and the lease is released; Run then stands back
// (WithResignPause), so that another candidate can win, and campaigns again.
//
// ctx bounds the waiting only. Called by the leading function itself, with its context or one
// made from it, Resign does not wait: the function has to return.
//
// Errors: ErrNotLeader; ctx's cause, while the term ends in the background; what
// redlock.Lease.Release says when the release did not reach a quorum (redlock.ErrNoQuorum: the
// name is free at the latest when the TTL ends) or the lease ended before the function returned.
func (e *Elector) Resign(ctx context.Context) error {
	t := e.leading()
	if t == nil || !e.resign(t) {
		return fmt.Errorf("leader: resign %q: %w", e.name, ErrNotLeader)
	}
	if ctx.Value(tenureKey{}) == t {
		return nil
	}
	select {
	case <-t.released:
	case <-ctx.Done():
		return fmt.Errorf("leader: resign %q: %w; the term ends in the background", e.name, context.Cause(ctx))
	}
	if t.err != nil {
		return fmt.Errorf("leader: resign %q: %w", e.name, t.err)
	}
	return nil
}

// resign reports whether the term had not ended yet. See conclude for why it locks.
func (e *Elector) resign(t *tenure) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current != t {
		return false
	}
	t.cancel(ErrResigned)
	return true
}

// pause is how long to stand back after a term.
func (e *Elector) pause(end ending, retry *backoff.ExponentialBackOff) time.Duration {
	switch end.outcome {
	case failed, panicked, unpublished:
		if end.lasted > retry.MaxInterval {
			retry.Reset()
		}
		return retry.NextBackOff()
	case resigned:
		retry.Reset()
		return *e.settings.resignPause
	default:
		retry.Reset()
		return max(0, e.settings.ttl/32-end.lasted)
	}
}

func newBackoff(ttl time.Duration) *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(ttl/8),
		backoff.WithMultiplier(2),
		backoff.WithMaxInterval(4*ttl),
		backoff.WithMaxElapsedTime(0),
	)
}

// sleep waits, unless there is nothing to wait for any more.
func (e *Elector) sleep(ctx context.Context, d time.Duration) {
	if d == 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-e.locker.Done():
	}
}
