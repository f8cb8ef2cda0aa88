package recipes

import (
	"github.com/robfig/cron/v3"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/scheduler"
)

func cronBefore(spec string, report func()) (*cron.Cron, error) {
	// region cron-before
	c := cron.New()
	_, err := c.AddFunc(spec, report) // once on every replica
	if err != nil {
		return nil, err
	}
	c.Start()
	return c, nil
	// endregion
}

func cronAfter(locker *redlock.Locker, spec string, report func()) (*cron.Cron, error) {
	// region cron-after
	sched, err := scheduler.New(locker)
	if err != nil {
		return nil, err
	}
	c := cron.New()
	once := cron.NewChain(scheduler.Singleton(sched, "report"))
	_, err = c.AddJob(spec, once.Then(cron.FuncJob(report)))
	if err != nil {
		return nil, err
	}
	c.Start()
	return c, nil
	// endregion
}
