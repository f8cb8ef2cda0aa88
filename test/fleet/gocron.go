package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/go-redsync/redsync/v4"
	"github.com/jonboulle/clockwork"

	gocronlock "github.com/quorate/quorate/scheduler/gocron"
	"github.com/quorate/quorate/test/rig"
)

// gocronLeased is the life of a replica that has gocron run its job under this library's leases.
func (c *client) gocronLeased(ctx context.Context, stop func()) error {
	leases, err := c.locker()
	if err != nil {
		return err
	}
	defer func() { _ = leases.Close() }()
	locker, err := gocronlock.NewLocker(leases, gocronlock.WithInterval(time.Second), gocronlock.WithTTL(c.TTL), gocronlock.WithClock(c.clock.Now))
	if err != nil {
		return err
	}
	return c.gocron(ctx, stop, locker)
}

// gocron is the life of a replica that has gocron run its job.
func (c *client) gocron(ctx context.Context, stop func(), locker gocron.Locker) error {
	sched, err := gocron.NewScheduler(gocron.WithClock(offsetClock{clockwork.NewRealClock(), c.clock}),
		gocron.WithLocation(time.UTC), gocron.WithDistributedLocker(locker))
	if err != nil {
		return err
	}
	_, err = sched.NewJob(gocron.CronJob("* * * * * *", true), gocron.NewTask(func(ctx context.Context) {
		e := event{Kind: started, Job: atMostOnce, Tick: wall(c.clock)}
		c.record.write(e)
		e.Kind, e.At = cut, 0
		if pause(ctx, c.Lasts) {
			e.Kind = completed
		}
		c.record.write(e)
	}), gocron.WithName(atMostOnce))
	if err != nil {
		return err
	}
	if err := c.nodes[0].Ping(ctx).Err(); err != nil {
		return fmt.Errorf("reach the server with the locks: %w", err)
	}
	go c.obey(stop, func(command) {})
	sched.Start()
	c.record.write(event{Kind: ready, Tick: wall(c.clock)})
	<-ctx.Done()
	return sched.Shutdown()
}

// redsyncLocker is a lock as gocron's package for Redis has it: redsync on one server, under the
// name of the job, asked for once.
type redsyncLocker struct {
	rs  *redsync.Redsync
	ttl time.Duration
}

// Lock asks once.
func (l redsyncLocker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	mutex := l.rs.NewMutex(key, redsync.WithTries(1), redsync.WithExpiry(l.ttl))
	if err := mutex.LockContext(ctx); err != nil {
		return nil, err
	}
	return redsyncLock{mutex}, nil
}

type redsyncLock struct{ mutex *redsync.Mutex }

// Unlock deletes the key.
func (l redsyncLock) Unlock(ctx context.Context) error {
	_, err := l.mutex.UnlockContext(ctx)
	return err
}

// offsetClock is the real clock, with a wall clock that is off.
type offsetClock struct {
	clockwork.Clock
	shown *rig.Clock
}

func (c offsetClock) Now() time.Time                  { return c.shown.Now() }
func (c offsetClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
func (c offsetClock) Until(t time.Time) time.Duration { return t.Sub(c.Now()) }
