package main

import (
	"context"
	"errors"
	"time"

	"github.com/quorate/quorate/redlock"
)

// A contender is a lock library as the load with the locks uses it.
type contender interface {
	// acquire waits until ctx ends, or asks once.
	acquire(ctx context.Context, name string, how how) (holding, error)
	close()
}

type how struct {
	try        bool // ask once
	autoExtend bool // where the library can
}

// A holding is a lock that was acquired.
type holding interface {
	token() int64 // 0 where there is none
	// left is how long it is still valid, as far as the library tells its holder. Where it tells
	// nothing, known is false, and the holder relies on it until it releases it.
	left() (d time.Duration, known bool)
	extend(ctx context.Context) error
	release(ctx context.Context) error
}

// A mortal holding tells when it is lost.
type mortal interface {
	lost() <-chan struct{}
}

// A stateful holding hands a value to the next holder.
type stateful interface {
	state() []byte
	save(ctx context.Context, value []byte) error
}

var (
	errPeerTaken = errors.New("a peer says that the lock is taken, or gives no reason")
	errPeerLost  = errors.New("a peer says that the lock is not held any more")
)

// quorate is this library.
type quorate struct{ locker *redlock.Locker }

func (q quorate) acquire(ctx context.Context, name string, how how) (holding, error) {
	var lease *redlock.Lease
	var err error
	if how.try {
		lease, err = q.locker.TryAcquire(ctx, name, redlock.WithAutoExtend(how.autoExtend))
	} else {
		lease, err = q.locker.Acquire(ctx, name, redlock.WithAutoExtend(how.autoExtend))
	}
	if err != nil {
		return nil, err
	}
	return leased{lease}, nil
}

func (q quorate) close() { _ = q.locker.Close() }

type leased struct{ lease *redlock.Lease }

func (l leased) token() int64                    { return int64(l.lease.Token()) }
func (l leased) state() []byte                   { return l.lease.State() }
func (l leased) extend(c context.Context) error  { return l.lease.Extend(c) }
func (l leased) release(c context.Context) error { return l.lease.Release(c) }

func (l leased) save(c context.Context, value []byte) error { return l.lease.Save(c, value) }

func (l leased) left() (time.Duration, bool) {
	d := l.lease.Remaining()
	if l.lease.Err() != nil {
		return 0, true
	}
	return d, true
}
