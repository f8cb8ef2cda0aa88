package crontab

import "time"

const (
	minEvery = time.Second
	maxEvery = 5 * 366 * 24 * time.Hour
)

// every comes due at the multiples of an interval since the Unix epoch, so that all replicas
// agree. (That of robfig/cron counts from when it is asked, which each replica does at a time of
// its own.)
type every struct {
	interval time.Duration
	loc      *time.Location
}

func (e every) location() *time.Location { return e.loc }

func (e every) Next(t time.Time) time.Time {
	t, ok := clamp(t)
	if !ok {
		return time.Time{}
	}
	// In milliseconds, which last for longer than the nanoseconds' 292 years.
	since, interval := t.UnixMilli(), e.interval.Milliseconds()
	past := (since%interval + interval) % interval
	next := time.UnixMilli(since - past + interval)
	if !next.Before(latest) {
		return time.Time{}
	}
	return next.In(e.loc)
}
