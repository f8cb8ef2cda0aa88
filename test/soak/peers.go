package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// The peers, each with its own defaults but for the TTL and what makes it wait. What a holder is
// told of its validity is taken from the library where that tells it; where it does not, as a
// careful user would find out.

// libs are all libraries that the part with the locks runs with, and what each promises.
var libs = []struct{ name, module, note string }{
	{"quorate", "github.com/quorate/quorate", "5 nodes"},
	{"redsync", "github.com/go-redsync/redsync/v4", "5 nodes; validity by Until"},
	{"redislock", "github.com/bsm/redislock", "1 node; validity as its TTL method says"},
	{"rueidislock", "github.com/redis/rueidis", "1 node, majority 2 of 3 keys; valid while its context is"},
}

// redsyncLib is redsync over all nodes, with go-redis in its default options.
type redsyncLib struct {
	rs  *redsync.Redsync
	ttl time.Duration
}

func newRedsync(c *client) redsyncLib {
	var pools []redsyncredis.Pool
	for _, node := range c.nodes {
		pools = append(pools, goredis.NewPool(node))
	}
	return redsyncLib{redsync.New(pools...), c.TTL}
}

func (l redsyncLib) acquire(ctx context.Context, name string, how how) (holding, error) {
	mutex := l.rs.NewMutex(name, redsync.WithExpiry(l.ttl))
	for {
		lock := mutex.LockContext // 32 tries
		if how.try {
			lock = mutex.TryLockContext
		}
		err := lock(ctx)
		switch {
		case err == nil:
			return redsyncLock{mutex}, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case how.try:
			return nil, fmt.Errorf("%w: %w", errPeerTaken, err)
		}
	}
}

func (redsyncLib) close() {}

type redsyncLock struct{ mutex *redsync.Mutex }

func (redsyncLock) token() int64 { return 0 }

func (l redsyncLock) left() (time.Duration, bool) { return time.Until(l.mutex.Until()), true }

func (l redsyncLock) extend(ctx context.Context) error {
	return peerLost(l.mutex.ExtendContext(ctx))
}

func (l redsyncLock) release(ctx context.Context) error {
	return peerLost(l.mutex.UnlockContext(ctx))
}

func peerLost(ok bool, err error) error {
	if ok {
		return nil
	}
	return errors.Join(errPeerLost, err)
}

// redislockLib is redislock, which is for one node.
type redislockLib struct {
	client *redislock.Client
	ttl    time.Duration
}

func newRedislock(c *client) redislockLib {
	return redislockLib{redislock.New(c.nodes[0]), c.TTL}
}

func (l redislockLib) acquire(ctx context.Context, name string, how how) (holding, error) {
	opts := &redislock.Options{RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond)}
	if how.try {
		opts = nil
	}
	lock, err := l.client.Obtain(ctx, name, l.ttl, opts)
	if errors.Is(err, redislock.ErrNotObtained) {
		err = fmt.Errorf("%w: %w", errPeerTaken, err)
	}
	if err != nil {
		return nil, err
	}
	h := &redislockLock{lock: lock, ttl: l.ttl}
	asked := time.Now()
	if left, err := lock.TTL(ctx); err == nil { // otherwise the caller knows nothing, and relies on nothing
		h.until = asked.Add(left)
	}
	return h, nil
}

func (redislockLib) close() {}

type redislockLock struct {
	lock  *redislock.Lock
	ttl   time.Duration
	until time.Time
}

func (*redislockLock) token() int64 { return 0 }

func (l *redislockLock) left() (time.Duration, bool) { return time.Until(l.until), true }

func (l *redislockLock) extend(ctx context.Context) error {
	asked := time.Now()
	err := l.lock.Refresh(ctx, l.ttl, nil)
	if err == nil {
		l.until = asked.Add(l.ttl)
	} else if errors.Is(err, redislock.ErrNotObtained) {
		err = errors.Join(errPeerLost, err)
	}
	return err
}

func (l *redislockLock) release(ctx context.Context) error {
	err := l.lock.Release(ctx)
	if errors.Is(err, redislock.ErrLockNotHeld) {
		err = errors.Join(errPeerLost, err)
	}
	return err
}

// rueidisLib is rueidislock on one server, where it takes a majority of three keys.
type rueidisLib struct{ locker rueidislock.Locker }

func newRueidislock(c *client) (contender, error) {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: c.Nodes[:1], ForceSingleClient: true},
		KeyValidity:  c.TTL,
	})
	if err != nil {
		return nil, fmt.Errorf("connect rueidislock: %w", err)
	}
	return rueidisLib{locker}, nil
}

func (l rueidisLib) acquire(ctx context.Context, name string, how how) (holding, error) {
	// The context that is given is the parent of the lock's own, so it must not end with the
	// caller's patience.
	parent, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	patience := context.AfterFunc(ctx, giveUp)
	lock := l.locker.WithContext
	if how.try {
		lock = l.locker.TryWithContext
	}
	held, unlock, err := lock(parent, name)
	if !patience() && err == nil {
		unlock()
		err = ctx.Err()
	}
	if err != nil {
		giveUp()
		if errors.Is(err, rueidislock.ErrNotLocked) {
			err = fmt.Errorf("%w: %w", errPeerTaken, err)
		}
		return nil, err
	}
	return rueidisLock{held, func() { unlock(); giveUp() }}, nil
}

func (l rueidisLib) close() { l.locker.Close() }

type rueidisLock struct {
	ctx    context.Context
	unlock func()
}

func (rueidisLock) token() int64 { return 0 }

func (l rueidisLock) left() (time.Duration, bool) { return 0, l.ctx.Err() != nil }

func (l rueidisLock) lost() <-chan struct{} { return l.ctx.Done() }

// extend does nothing: the library does it by itself.
func (l rueidisLock) extend(context.Context) error {
	if l.ctx.Err() != nil {
		return errPeerLost
	}
	return nil
}

func (l rueidisLock) release(context.Context) error {
	err := l.extend(context.Background())
	l.unlock()
	return err
}

// naive is what the fencing texts warn of: SET NX on one server, with a TTL that the holder does
// not look at again. It is here to be caught.
type naive struct {
	node     redis.UniversalClient
	ttl      time.Duration
	identity string
}

func (n naive) acquire(ctx context.Context, name string, how how) (holding, error) {
	for {
		ok, err := n.node.SetNX(ctx, name, n.identity, n.ttl).Result()
		switch {
		case ok:
			return naiveLock{n, name}, nil
		case how.try && err == nil:
			return nil, errPeerTaken
		case how.try:
			return nil, err
		}
		if !pause(ctx, 20*time.Millisecond) {
			return nil, ctx.Err()
		}
	}
}

func (naive) close() {}

type naiveLock struct {
	naive
	name string
}

func (naiveLock) token() int64                 { return 0 }
func (naiveLock) left() (time.Duration, bool)  { return 0, false }
func (naiveLock) extend(context.Context) error { return nil }

func (l naiveLock) release(ctx context.Context) error { return l.node.Del(ctx, l.name).Err() }
