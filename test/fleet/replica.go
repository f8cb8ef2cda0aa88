package main

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/scheduler"
	"github.com/quorate/quorate/test/rig"
)

// completeScript enters a run that has ended: for each tick the first, and the others, which a run
// that is repeated may bring, apart.
const completeScript = `
if redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2]) == 1 then
	redis.call('RPUSH', KEYS[2], ARGV[1] .. ' ' .. ARGV[2])
	return 1
end
return 0`

func doneKey(job string) string  { return "done:{" + job + "}" }
func orderKey(job string) string { return "order:{" + job + "}" }

// crontab is the life of a replica of this library.
func (c *client) crontab(ctx context.Context, stop func()) error {
	locker, err := c.locker()
	if err != nil {
		return err
	}
	defer func() { _ = locker.Close() }()
	gate, err := fencing.NewRedisGate(c.resource)
	if err != nil {
		return err
	}
	complete, err := fencing.NewScript(completeScript)
	if err != nil {
		return err
	}
	sched, err := scheduler.New(locker, scheduler.WithClock(c.clock), scheduler.WithIdentity(c.identity()),
		scheduler.WithObserver(c.observe))
	if err != nil {
		return err
	}
	for _, job := range []string{atMostOnce, atLeastOnce} {
		err := sched.Add(job, "@every 1s", func(ctx context.Context, run scheduler.Run) error {
			e := event{Job: job, Tick: run.Scheduled.Unix(), Token: int64(run.Token), Attempt: run.Attempt}
			tell := func(kind kind, err error) {
				e.Kind, e.At = kind, rig.Stamp()
				if err != nil {
					e.Err = err.Error()
				}
				c.record.write(e)
			}
			tell(started, nil)
			if !pause(ctx, c.Lasts) {
				tell(cut, context.Cause(ctx))
				return context.Cause(ctx)
			}
			first, err := gate.Run(ctx, job, run.Token, complete, []string{doneKey(job), orderKey(job)}, e.Tick, e.Token).Bool()
			switch {
			case err != nil:
				tell(cut, err)
			case first:
				tell(completed, nil)
			default:
				tell(again, nil)
			}
			return err
		}, c.jobOptions(job)...)
		if err != nil {
			return err
		}
	}
	// Until the nodes have answered there is nothing that this replica could do.
	for {
		if _, err := locker.Inspect(ctx, "job/"+atMostOnce); err == nil {
			break
		}
		if !pause(ctx, 10*time.Millisecond) {
			return fmt.Errorf("end before the nodes have answered: %w", context.Cause(ctx))
		}
	}
	go c.obey(stop, func(command) {})
	c.record.write(event{Kind: ready, Tick: wall(c.clock)})
	return sched.Run(ctx)
}

// observe tells what no run tells.
func (c *client) observe(e scheduler.Event) {
	told := event{Job: e.Job, Tick: e.Scheduled.Unix(), Token: int64(e.Token), Attempt: e.Attempt, Err: string(e.Reason)}
	switch e.Outcome {
	case scheduler.Interrupted:
		told.Kind = interrupted
	case scheduler.Missed:
		told.Kind = missed
	default:
		return
	}
	c.record.write(told)
}

// jobOptions are those of a job that is to lose no tick, however long a replica that was killed
// keeps its lease from the others, and however many ticks have come due by then.
func (c *client) jobOptions(job string) []scheduler.JobOption {
	opts := []scheduler.JobOption{
		scheduler.WithTTL(c.TTL), scheduler.WithMisfire(scheduler.MisfireAll(100)), scheduler.WithCatchUp(5 * time.Minute),
		scheduler.WithOverlap(scheduler.OverlapQueue),
	}
	if job == atLeastOnce {
		opts = append(opts, scheduler.WithAtLeastOnce(10))
	}
	return opts
}
