package crontab

import "time"

// once comes due at one time.
type once struct{ at time.Time }

// At comes due once, at t, or less than a millisecond later if t is not a whole one.
func At(t time.Time) Schedule { return once{ceil(t.Round(0))} }

func (o once) location() *time.Location { return o.at.Location() }

func (o once) Next(t time.Time) time.Time {
	if t.Before(o.at) {
		return o.at
	}
	return time.Time{}
}
