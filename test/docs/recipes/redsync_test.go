package recipes

import (
	"context"
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4"
	rsredis "github.com/go-redsync/redsync/v4/redis"
	rsgoredis "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/redlock"
)

func redsyncBefore(ctx context.Context, nodes []redis.UniversalClient, work func(context.Context) error) error {
	// region redsync-before
	var pools []rsredis.Pool
	for _, node := range nodes {
		pools = append(pools, rsgoredis.NewPool(node))
	}
	mutex := redsync.New(pools...).NewMutex("sku:42",
		redsync.WithExpiry(8*time.Second))

	if err := mutex.LockContext(ctx); err != nil {
		return err
	}
	err := work(ctx) // nothing tells it when 8 s are over
	_, unlock := mutex.UnlockContext(ctx)
	return errors.Join(err, unlock)
	// endregion
}

func redsyncAfter(ctx context.Context, nodes []redis.UniversalClient, work func(context.Context, redlock.Token) error) error {
	// region redsync-after
	locker, err := redlock.New(nodes,
		redlock.WithKeyPrefix("")) // while redsync is there
	if err != nil {
		return err
	}
	defer locker.Close() // one Locker for the process

	return locker.Do(ctx, "sku:42",
		func(ctx context.Context, lease *redlock.Lease) error {
			return work(ctx, lease.Token()) // ctx ends with the lease
		})
	// endregion
}
