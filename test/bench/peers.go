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
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/quorate/quorate/redlock"
)

// errNotHeld is what a peer says when it releases what it does not hold.
var errNotHeld = errors.New("the lock was not held any more")

// redsyncPeer is redsync over all nodes.
type redsyncPeer struct {
	nodes clients
	rs    *redsync.Redsync
}

func openRedsync(nodes []string) *redsyncPeer {
	c := dial(nodes)
	pools := make([]redsyncredis.Pool, len(c))
	for i, client := range c {
		pools[i] = goredis.NewPool(client)
	}
	return &redsyncPeer{c, redsync.New(pools...)}
}

// lock asks again when the library has given up after its 32 tries: the caller wants the lock.
func (p *redsyncPeer) lock(ctx context.Context, name string) (holding, error) {
	mutex := p.rs.NewMutex(name)
	for {
		err := mutex.LockContext(ctx)
		if err == nil {
			return holding{unlock: func(ctx context.Context) error {
				ok, err := mutex.UnlockContext(ctx)
				if !ok {
					return errors.Join(errNotHeld, err)
				}
				return nil
			}}, nil
		}
		if ctx.Err() != nil {
			return holding{}, context.Cause(ctx)
		}
	}
}

func (p *redsyncPeer) close() { p.nodes.close() }

// redislockPeer is redislock, which is for one node.
type redislockPeer struct {
	nodes  clients
	client *redislock.Client
}

func openRedislock(node string) *redislockPeer {
	c := dial([]string{node})
	return &redislockPeer{c, redislock.New(c[0])}
}

func (p *redislockPeer) lock(ctx context.Context, name string) (holding, error) {
	// It has no default for either: the TTL is ours, the pause that of its README.
	lock, err := p.client.Obtain(ctx, name, redlock.DefaultTTL, &redislock.Options{
		RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond),
	})
	if err != nil {
		return holding{}, err
	}
	return holding{unlock: lock.Release}, nil
}

func (p *redislockPeer) close() { p.nodes.close() }

// rueidisPeer is rueidislock on one server. It extends its locks by itself.
type rueidisPeer struct{ locker rueidislock.Locker }

func openRueidislock(node string, majority int32) (*rueidisPeer, error) {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{node}, ForceSingleClient: true},
		KeyMajority:  majority,
	})
	if err != nil {
		return nil, fmt.Errorf("connect rueidislock: %w", err)
	}
	return &rueidisPeer{locker}, nil
}

// lock wants a ctx without a deadline: the library would take that for the end of the lock.
func (p *rueidisPeer) lock(ctx context.Context, name string) (holding, error) {
	_, unlock, err := p.locker.WithContext(ctx, name)
	if err != nil {
		return holding{}, err
	}
	return holding{unlock: func(context.Context) error { unlock(); return nil }}, nil
}

func (p *rueidisPeer) close() { p.locker.Close() }
