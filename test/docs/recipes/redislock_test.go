package recipes

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/redlock"
)

func redislockBefore(ctx context.Context, node redis.UniversalClient, work func(context.Context) error) error {
	// region redislock-before
	lock, err := redislock.New(node).Obtain(ctx,
		"import", 8*time.Second, nil)
	if errors.Is(err, redislock.ErrNotObtained) {
		return nil // another does it
	}
	if err != nil {
		return err
	}
	return errors.Join(work(ctx), lock.Release(ctx))
	// endregion
}

func redislockAfter(ctx context.Context, node redis.UniversalClient, work func(context.Context) error) error {
	// region redislock-after
	locker, err := redlock.New(
		[]redis.UniversalClient{node}, // one node, or three
		redlock.WithKeyPrefix(""))     // while redislock is there
	if err != nil {
		return err
	}
	defer locker.Close()

	lease, err := locker.TryAcquire(ctx, "import",
		redlock.WithAutoExtend(true))
	if errors.Is(err, redlock.ErrTaken) {
		return nil // another does it
	}
	if err != nil {
		return err
	}
	return errors.Join(work(lease.Context()), lease.Release(ctx))
	// endregion
}
