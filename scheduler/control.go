package scheduler

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/redlock"
)

const (
	controlVersion = 1
	maxPauses      = 8
	// maxRequests is how many triggers, and how many backfills, of a job may wait.
	maxRequests = 32
	// settling is for how long requests that were dealt with are kept.
	settling = time.Minute
	// maxKept is how many of a kind are kept at most, among them all that wait.
	maxKept = maxRequests + maxRequests/2
)

// A control is what people ask of a job: the state of a lease of its own, which is held for the
// time of a change only, so that a run that goes on is in nobody's way. Times are Unix
// milliseconds.
type control struct {
	Version int        `json:"v"`
	Paused  *pause     `json:"paused,omitempty"`
	Pauses  [][2]int64 `json:"pauses,omitempty"` // the last that are over: ticks in them stay missed

	// Triggers and Backfills are numbered, so that the register needs to know only up to which
	// they were dealt with.
	Trigger   int64     `json:"trigger,omitempty"` // number of the last
	Triggers  []request `json:"triggers,omitempty"`
	Backfill  int64     `json:"backfill,omitempty"`
	Backfills []request `json:"backfills,omitempty"`
}

// A pause lasts until somebody ends it.
type pause struct {
	At int64  `json:"at"`
	By string `json:"by"`
}

// A request is a trigger or a backfill.
type request struct {
	Number int64  `json:"n"`
	At     int64  `json:"at"`
	From   int64  `json:"from,omitempty"`
	To     int64  `json:"to,omitempty"`
	By     string `json:"by,omitempty"`
}

// pausedAt reports whether a tick is not to be run because of a pause. A pause that goes on holds
// for all ticks, whatever the clocks say.
func (c *control) pausedAt(tick time.Time) bool {
	ms := tick.UnixMilli()
	return c.Paused != nil || slices.ContainsFunc(c.Pauses, func(p [2]int64) bool { return p[0] < ms && ms <= p[1] })
}

func readControl(state []byte) (control, error) {
	var c control
	if state == nil {
		return c, nil
	}
	if err := decode(state, &c); err != nil {
		return c, err
	}
	return c, checkVersion(c.Version, controlVersion)
}

// encode gives the state to save. Who asked gives way to what is asked.
func (c *control) encode() []byte {
	c.Version = controlVersion
	b := encode(c)
	if len(b) <= redlock.MaxStateSize {
		return b
	}
	brief := *c
	brief.Triggers, brief.Backfills = slices.Clone(c.Triggers), slices.Clone(c.Backfills)
	for _, requests := range [][]request{brief.Triggers, brief.Backfills} {
		for i := range requests {
			requests[i].By = ""
		}
	}
	return encode(&brief)
}

// pause begins a pause, unless one goes on, and reports whether anything changed.
func (c *control) pause(now time.Time, by string) bool {
	if c.Paused != nil {
		return false
	}
	c.Paused = &pause{At: now.UnixMilli(), By: by}
	return true
}

// resume ends a pause, if one goes on.
func (c *control) resume(now time.Time) bool {
	if c.Paused == nil {
		return false
	}
	if ended := [2]int64{c.Paused.At, now.UnixMilli()}; ended[0] < ended[1] {
		c.Pauses = append(slices.Clone(c.Pauses), ended)
		c.Pauses = c.Pauses[max(0, len(c.Pauses)-maxPauses):]
	}
	c.Paused = nil
	return true
}

// prune forgets the requests that were dealt with, a while ago: what was seen of the register
// without its lease may be a claim that no quorum has.
func (c *control) prune(reg *register, now time.Time) {
	old := func(requests []request, upTo int64) []request {
		requests = slices.DeleteFunc(slices.Clone(requests), func(r request) bool {
			return r.Number <= upTo && now.Sub(time.UnixMilli(r.At)).Abs() > settling
		})
		return requests[max(0, len(requests)-maxKept):]
	}
	c.Triggers, c.Backfills = old(c.Triggers, reg.Triggers), old(c.Backfills, reg.Backfills)
	// Where the control was lost and the register was not, numbers go on from there.
	c.Trigger, c.Backfill = max(c.Trigger, reg.Triggers), max(c.Backfill, reg.Backfills)
}

// waiting is how many requests have not been dealt with.
func waiting(requests []request, upTo int64) (n int) {
	for _, r := range requests {
		if r.Number > upTo {
			n++
		}
	}
	return n
}

func (c *control) trigger(reg *register, now time.Time, by string) error {
	if waiting(c.Triggers, reg.Triggers) >= maxRequests {
		return fmt.Errorf("%w: %d triggers wait to be run", ErrTooManyRequests, maxRequests)
	}
	c.Trigger++
	c.Triggers = append(c.Triggers, request{Number: c.Trigger, At: now.UnixMilli(), By: by})
	return nil
}

func (c *control) fill(reg *register, now, from, to time.Time, by string) error {
	if waiting(c.Backfills, reg.Backfills) >= maxRequests {
		return fmt.Errorf("%w: %d backfills wait to be run", ErrTooManyRequests, maxRequests)
	}
	c.Backfill++
	c.Backfills = append(c.Backfills, request{Number: c.Backfill, At: now.UnixMilli(), From: from.UnixMilli(), To: to.UnixMilli(), By: by})
	return nil
}
