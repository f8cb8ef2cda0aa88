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
	identity  string
	settings  settings
	lease     []redlock.LeaseOption
	telemetry *telemetry

	mu      sync.Mutex
	running bool
	current *tenure  // whose function runs; nil otherwise
	fitness *fitness // of the Run that runs

	yielding yielding // used by Run alone
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
	e := &Elector{locker: locker, name: name, identity: locker.Identity(), settings: s, lease: s.lease()}
	if s.identity != nil {
		e.identity = *s.identity
	}
	if err := locker.Validate(name, e.lease...); err != nil {
		return nil, fmt.Errorf("leader: elector %.64q: %w", name, err)
	}
	if size := e.headSize(); size > maxRecordHead {
		return nil, fmt.Errorf("leader: elector %.64q: %w: identity, address and labels take %d bytes as they are published, the limit is %d; shorten them, or leave out what JSON escapes",
			name, redlock.ErrInvalidOption, size, maxRecordHead)
	}
	if e.telemetry, err = newTelemetry(&s); err != nil {
		return nil, fmt.Errorf("leader: elector %.64q: create metrics: %w", name, err)
	}
	return e, nil
}

// Run campaigns until it leads, calls lead, and campaigns again when that has returned, until ctx
// ends. See the package documentation for what ends a term, and what follows.
//
// The context that lead is given ends when the lease does, when the term has lasted long enough, when
// the health check fails, on Resign and Transfer, and when ctx does; context.Cause then gives a
// *redlock.LeaseError, an error that wraps ErrTermLimit or ErrUnhealthy, ErrResigned, ErrTransferred,
// or ctx's cause. It carries ctx's values, and redlock.LeaseFrom finds the lease in it; its Err looks
// at the clock and so is right at any moment. The lease is released only when lead has returned, so
// lead must wait for what it started.
//
// What lead returns never ends Run: an error is logged, and so is a panic, with its stack.
//
// Run returns nil when ctx ends: that is how it is told to stop, and in an errgroup no failure
// of its own. Otherwise it returns an error: one that wraps redlock.ErrClosed when the Locker is
// closed, another that no further attempt mends (redlock.ErrSameServer,
// redlock.ErrTokensExhausted), ErrRunning when another Run of this Elector has not returned. When it
// returns, all that it started has ended, and the lease is released as far as the nodes could be
// reached; it does not return while lead, or a health check, does not.
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
	defer e.watchFitness(ctx)()

	retry := newBackoff(e.settings.ttl)
	for ctx.Err() == nil {
		lease, err := e.stand(ctx)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil
		default:
			return fmt.Errorf("leader: run %q: %w", e.name, err) // redlock retries what a retry can mend
		}
		end := e.serve(ctx, lease, lead)
		pause := e.pause(end, retry)
		switch end.outcome {
		case resigned, transferred: // for others to win, unless one of those hands back
			e.standAside(ctx, pause, func(r *record) bool { return r.Heir == e.identity })
		default:
			e.sleep(ctx, pause)
		}
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
	t := e.tenure()
	if t == nil || t.lease.Err() != nil {
		return nil
	}
	return t
}

// tenure is the one whose function runs, whether or not its lease lasts.
func (e *Elector) tenure() *tenure {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.current
}

// Resign ends the term: the context of the leading function ends with ErrResigned as its cause.
// Resign waits until the function has returned and the lease is released; Run then stands back
// (WithResignPause), so that another candidate can win, and campaigns again.
//
// ctx bounds the waiting only. Called by the leading function itself, with its context or one
// made from it, Resign does not wait: the function has to return.
//
// Errors: ErrNotLeader, also with the context of a term that is over; ctx's cause, while the term ends
// in the background; what redlock.Lease.Release says when the release did not reach a quorum
// (redlock.ErrNoQuorum: the name is free at the latest when the TTL ends) or the lease ended before the
// function returned.
func (e *Elector) Resign(ctx context.Context) error {
	t, within := e.meant(ctx)
	if t == nil || !e.end(t, "", ErrResigned) {
		return fmt.Errorf("leader: resign %q: %w", e.name, ErrNotLeader)
	}
	if within {
		return nil
	}
	if err := t.gone(ctx); err != nil {
		return fmt.Errorf("leader: resign %q: %w", e.name, err)
	}
	return nil
}

// meant is the term that runs, and whether ctx is that of its function. It is nil where ctx is of a term
// before: what that one has left behind has no say in this one.
func (e *Elector) meant(ctx context.Context) (t *tenure, within bool) {
	t = e.leading()
	own, within := ctx.Value(tenureKey{e}).(*tenure)
	if within && own != t {
		return nil, false
	}
	return t, within
}

// end ends a term for one of the elector's own reasons, and reports whether it had not ended yet. See
// conclude for why it locks.
func (e *Elector) end(t *tenure, heir string, why error) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current != t {
		return false
	}
	if t.ctx.Err() == nil {
		t.heir = heir
	}
	t.cancel(why)
	return true
}

// gone waits until the term is over and its lease released.
func (t *tenure) gone(ctx context.Context) error {
	select {
	case <-t.released:
		return t.err
	case <-ctx.Done():
		return fmt.Errorf("%w; the term ends in the background", context.Cause(ctx))
	}
}

// pause is how long to stand back after a term.
func (e *Elector) pause(end ending, retry *backoff.ExponentialBackOff) time.Duration {
	switch end.outcome {
	case failed, panicked, unpublished, unhealthy:
		if end.lasted > retry.MaxInterval {
			retry.Reset()
		}
		return retry.NextBackOff()
	case resigned, transferred:
		retry.Reset()
		return *e.settings.resignPause
	case stoodBack: // it has done so
		return 0
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
