package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/scheduler"
)

// ticks has the client run cron jobs: one with short runs, one with runs that outlast the TTL.
func (c *client) ticks(ctx context.Context, all *sync.WaitGroup) error {
	q := c.contender.(quorate)
	sched, err := scheduler.New(q.locker, scheduler.WithClock(c.clock))
	if err != nil {
		return err
	}
	for i, job := range []struct {
		name, spec string
		longest    time.Duration
	}{
		{"short", "@every 1s", 50 * time.Millisecond},
		{"long", "@every 2s", 2 * c.TTL},
	} {
		r, choices := c.rng(300+uint64(i)), sync.Mutex{}
		err := sched.Add(job.name, job.spec, func(running context.Context, tick scheduler.Run) error {
			choices.Lock()
			d := between(r, time.Millisecond, job.longest)
			choices.Unlock()
			// The scheduler does not say when it asked: the call and the return are one.
			id := c.record.ask("run", job.name)
			c.record.write(event{Kind: run, ID: id, Name: job.name, Token: int64(tick.Token), Value: fmt.Sprint(tick.Scheduled.UnixMilli())})
			c.tellLease(running, held, id)
			lease, _ := redlock.LeaseFrom(running)
			c.watch(running, id, leased{lease}, d)
			c.record.end(id, context.Cause(running))
			return nil
		}, scheduler.WithTTL(c.TTL), scheduler.WithStartDeadline(time.Second))
		if err != nil {
			return err
		}
	}
	all.Go(func() { _ = sched.Run(ctx) })
	return nil
}
