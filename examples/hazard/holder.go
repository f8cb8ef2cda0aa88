package main

import (
	"bufio"
	"context"
	"errors"
	"os"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

// A holder is one process that sells one unit: it takes the lease, reads how many are left, and
// writes one less.
type holder struct {
	cfg    config
	locker *redlock.Locker
	store  *redis.Client
	gate   *fencing.RedisGate
	guard  *fencing.Guard
}

func runHolder(cfg config) error {
	locker, err := cfg.locker()
	if err != nil {
		return err
	}
	store, err := connect(cfg.Store)
	if err != nil {
		return err
	}
	gate, err := fencing.NewRedisGate(store)
	if err != nil {
		return err
	}
	guard, err := fencing.NewGuard(locker, gate, fencing.WithLease(redlock.WithAutoExtend(canFreeze)))
	if err != nil {
		return err
	}
	h := &holder{cfg: cfg, locker: locker, store: store, gate: gate, guard: guard}
	sell := h.sellWithoutGate
	if cfg.Gate {
		sell = h.sellWithGate
	}
	err = sell(context.Background())
	switch {
	case errors.Is(err, fencing.ErrStaleToken):
		return report(event{Kind: refused, Text: fencing.ErrStaleToken.Error()})
	case errors.Is(err, redlock.ErrLeaseExpired):
		return report(event{Kind: learned})
	}
	return err
}

// sellWithoutGate trusts the lease alone.
func (h *holder) sellWithoutGate(ctx context.Context) error {
	return h.locker.Do(ctx, product, func(ctx context.Context, lease *redlock.Lease) error {
		left, err := h.read(ctx, lease.Token())
		if err != nil {
			return err
		}
		if err := h.store.Set(context.WithoutCancel(ctx), stockKey, left-1, 0).Err(); err != nil {
			return err
		}
		return report(event{Kind: wrote, Token: lease.Token(), Left: left - 1})
	}, redlock.WithAutoExtend(canFreeze))
}

// sellWithGate is the same, and gives its token to the store with the write.
func (h *holder) sellWithGate(ctx context.Context) error {
	return h.guard.Do(ctx, product, func(ctx context.Context, token redlock.Token) error {
		left, err := h.read(ctx, token)
		if err != nil {
			return err
		}
		if err := h.gate.Set(context.WithoutCancel(ctx), product, token, stockKey, left-1, 0); err != nil {
			return err
		}
		return report(event{Kind: wrote, Token: token, Left: left - 1})
	})
}

// read finds how many units are left, and looks at the lease a last time. Then anything can happen:
// a garbage collection, a swapped page, a virtual machine that is moved. Whoever writes after this
// cannot know how long ago the look was; so the writes above have no context that would end them,
// as one that is already on its way has none.
func (h *holder) read(ctx context.Context, token redlock.Token) (left int, err error) {
	left, err = h.store.Get(ctx, stockKey).Int()
	if err != nil {
		return 0, err
	}
	if err := report(event{Kind: holds, Token: token, Left: left}); err != nil {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if !h.cfg.Pause {
		return left, nil
	}
	// So that the pause comes exactly here, the holder waits for it. The parent stops the process
	// before it lets it go on.
	if err := report(event{Kind: looked, Token: token}); err != nil {
		return 0, err
	}
	if !bufio.NewScanner(os.Stdin).Scan() {
		return 0, errors.New("the parent has gone")
	}
	return left, nil
}
