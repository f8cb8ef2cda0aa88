package recipes

import (
	"context"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/go-redsync/redsync/v4"
	rsgoredis "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/scheduler"
	gocronlock "github.com/quorate/quorate/scheduler/gocron"
)

// region gocron-before
type nameLocker struct{ rs *redsync.Redsync }

func (l nameLocker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	mutex := l.rs.NewMutex(job)
	return nameLock{mutex}, mutex.LockContext(ctx)
}

type nameLock struct{ mutex *redsync.Mutex }

func (l nameLock) Unlock(ctx context.Context) error {
	_, err := l.mutex.UnlockContext(ctx)
	return err
}

func gocronBefore(node redis.UniversalClient, spec string, report func()) (gocron.Scheduler, error) {
	locker := nameLocker{redsync.New(rsgoredis.NewPool(node))}
	sched, err := gocron.NewScheduler(
		gocron.WithDistributedLocker(locker))
	if err != nil {
		return nil, err
	}
	_, err = sched.NewJob(gocron.CronJob(spec, true),
		gocron.NewTask(report), gocron.WithName("report"))
	return sched, err
}

// endregion

// region gocron-after
func gocronAfter(leases *redlock.Locker, spec string, every time.Duration, report func()) (gocron.Scheduler, error) {
	locker, err := gocronlock.NewLocker(leases,
		gocronlock.WithInterval(every)) // that of the job
	if err != nil {
		return nil, err
	}
	sched, err := gocron.NewScheduler(
		gocron.WithDistributedLocker(locker))
	if err != nil {
		return nil, err
	}
	_, err = sched.NewJob(gocron.CronJob(spec, true),
		gocron.NewTask(report), gocron.WithName("report"))
	return sched, err
}

// endregion

func gocronWithout(ctx context.Context, locker *redlock.Locker, spec string, report func(context.Context) error) error {
	// region gocron-without
	sched, err := scheduler.New(locker)
	if err != nil {
		return err
	}
	err = sched.Add("report", spec, func(ctx context.Context, run scheduler.Run) error {
		return report(ctx) // run.Scheduled is the tick, run.Token the fencing token
	})
	if err != nil {
		return err
	}
	return sched.Run(ctx) // until ctx ends, then drains
	// endregion
}
