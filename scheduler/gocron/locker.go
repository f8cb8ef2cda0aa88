package gocronlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/quorate/quorate/redlock"
)

// A Locker is a gocron.Locker, for gocron.WithDistributedLocker and WithDistributedJobLocker. It is
// safe for use by many goroutines and schedulers, and holds nothing that needs closing.
type Locker struct {
	leases   *redlock.Locker
	settings settings
	lease    []redlock.LeaseOption

	mu   sync.Mutex
	held map[string]*redlock.Lease // by the job's name
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker makes a Locker of the one that grants the leases, which stays the caller's: shut the
// schedulers down before it is closed. The errors are redlock.ErrInvalidOption, ErrInvalidName
// (of the prefix), ErrTTLTooShort and ErrTTLTooLong.
func NewLocker(leases *redlock.Locker, opts ...Option) (*Locker, error) {
	if leases == nil {
		return nil, fmt.Errorf("gocronlock: %w: the Locker is nil; make one with redlock.New", redlock.ErrInvalidOption)
	}
	s, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	l := &Locker{leases: leases, settings: s, lease: s.lease(), held: map[string]*redlock.Lease{}}
	if err := leases.Validate(s.prefix+"job", l.lease...); err != nil {
		return nil, fmt.Errorf("gocronlock: %w", err)
	}
	return l, nil
}

// Lock claims the tick that is due now for the job with this name. gocron calls it, and runs the
// job if it returns a lock.
//
// It is refused with ErrClaimed when the tick has been claimed; with redlock.ErrTaken when the run
// of another tick still goes on after half an interval; with redlock.ErrNoQuorum when no majority
// of nodes answers in that time; with ErrRegister.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	now := l.settings.now() // when the tick is due, or shortly after
	lease, err := l.claim(ctx, key, now)
	if err != nil {
		return nil, fmt.Errorf("gocronlock: %q at %v: %w", key, now.Round(time.Millisecond), err)
	}
	l.mu.Lock()
	l.held[key] = lease
	l.mu.Unlock()
	return &lock{locker: l, key: key, lease: lease}, nil
}

// claim gets the lease, or finds the tick claimed. The waiting is not left to redlock: whoever has
// the lease for this very tick need not be waited for.
func (l *Locker) claim(ctx context.Context, key string, now time.Time) (*redlock.Lease, error) {
	name := l.settings.prefix + key
	ctx, cancel := context.WithTimeout(ctx, l.settings.patience())
	defer cancel()
	for wait := time.Millisecond; ; wait = min(2*wait, 32*time.Millisecond) {
		lease, err := l.leases.TryAcquire(ctx, name, l.lease...)
		if err == nil {
			return lease, l.enter(ctx, lease, now)
		}
		if !errors.Is(err, redlock.ErrTaken) && !errors.Is(err, redlock.ErrNoQuorum) {
			return nil, err
		}
		if status, lookErr := l.leases.Inspect(ctx, name); lookErr == nil {
			known, readErr := readClaims(status.State)
			switch {
			case readErr != nil:
				return nil, readErr
			case known.near(now, l.settings.interval):
				return nil, ErrClaimed
			}
		}
		if pause(ctx, wait+rand.N(wait)) != nil { // by chance, so that replicas do not ask in step
			return nil, err
		}
	}
}

// enter puts the tick on record, under the lease. Where it cannot, or the tick is there, the lease
// is given back.
func (l *Locker) enter(ctx context.Context, lease *redlock.Lease, now time.Time) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreLoss(l.release(ctx, lease)))
		}
	}()
	known, err := readClaims(lease.State())
	switch {
	case err != nil:
		return err
	case known.near(now, l.settings.interval):
		return ErrClaimed
	}
	// A claim that is under way is not given up half: it might be on record.
	return lease.Save(context.WithoutCancel(ctx), known.with(now))
}

// release gives a lease back. ctx has only its values to say: gocron ends it when it shuts down, and
// Unlock comes after that.
func (l *Locker) release(ctx context.Context, lease *redlock.Lease) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.settings.ttl)
	defer cancel()
	return lease.Release(ctx)
}

// ignoreLoss leaves out what a refusal need not say: that the lease had ended already, or will by
// itself.
func ignoreLoss(err error) error {
	if errors.Is(err, redlock.ErrNoQuorum) || errors.Is(err, redlock.ErrLeaseLost) || errors.Is(err, redlock.ErrLeaseExpired) {
		return nil
	}
	return err
}

// Lease gives the lease under which the job with this name runs in this process, by this Locker: its
// context ends when the run is not covered any more, and its token is for gates at the resources
// that the run writes to. There is none when no run goes on. The lease's state belongs to the
// Locker: do not save to it, and do not release it.
func (l *Locker) Lease(key string) (lease *redlock.Lease, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lease, ok = l.held[key]
	return lease, ok
}

// lock is a gocron.Lock.
type lock struct {
	locker *Locker
	key    string
	lease  *redlock.Lease
}

// Unlock ends the lease. The error says so when it had ended before, so that the run was not
// covered by it to its end; gocron drops that.
func (k *lock) Unlock(ctx context.Context) error {
	l := k.locker
	l.mu.Lock()
	if l.held[k.key] == k.lease {
		delete(l.held, k.key)
	}
	l.mu.Unlock()
	if err := l.release(ctx, k.lease); err != nil {
		return fmt.Errorf("gocronlock: %q: %w", k.key, err)
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
