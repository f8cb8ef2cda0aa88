package scheduler

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/crontab"
)

// A MisfirePolicy says what becomes of ticks that were not started in time, because the fleet was
// down, was redeployed, or could not reach the nodes: see WithMisfire. The zero value is
// MisfireNewest.
type MisfirePolicy struct {
	kind  misfireKind
	limit int
}

type misfireKind int

const (
	misfireNewest misfireKind = iota
	misfireSkip
	misfireAll
)

// maxDue is how many ticks are looked at one by one.
const maxDue = 1000

// MisfireNewest runs the newest of the ticks that were not started, once, if it is not older than
// WithCatchUp. The others are missed. It is the default.
func MisfireNewest() MisfirePolicy { return MisfirePolicy{} }

// MisfireSkip runs none: a tick that was not started within WithStartDeadline is missed.
func MisfireSkip() MisfirePolicy { return MisfirePolicy{kind: misfireSkip} }

// MisfireAll runs those that are not older than WithCatchUp, one after the other, oldest first:
// the newest limit of them, 1 to 1,000. The others are missed.
func MisfireAll(limit int) MisfirePolicy { return MisfirePolicy{kind: misfireAll, limit: limit} }

// An OverlapPolicy says what becomes of a tick that comes due while a run of the job goes on, on
// whichever replica: see WithOverlap.
type OverlapPolicy int

const (
	// OverlapSkip has it missed. The default.
	OverlapSkip OverlapPolicy = iota
	// OverlapQueue has the first such tick wait until the run has ended, however long that takes;
	// those behind it are missed.
	OverlapQueue
	// OverlapAllow has it run at the same time.
	OverlapAllow
)

// A Gap says what becomes of a tick at a local time that does not exist on a day, because clocks
// go forward: see WithDST.
type Gap int

const (
	// GapRunAfter has it come due at the first moment after the gap. The default.
	GapRunAfter Gap = Gap(crontab.GapRunAfter)
	// GapSkip leaves it out on that day.
	GapSkip Gap = Gap(crontab.GapSkip)
)

// A Fold says what becomes of a tick at a local time that exists twice on a day, because clocks
// go back: see WithDST.
type Fold int

const (
	// FoldOnce has it come due the first time only. The default.
	FoldOnce Fold = Fold(crontab.FoldOnce)
	// FoldTwice has it come due both times.
	FoldTwice Fold = Fold(crontab.FoldTwice)
)

func (m MisfirePolicy) validate() error {
	if m.kind == misfireAll && (m.limit < 1 || m.limit > maxDue) {
		return fmt.Errorf("%w: limit %d of MisfireAll is not between 1 and %d", ErrInvalidOption, m.limit, maxDue)
	}
	return nil
}

// window is how long after its time a tick may be started.
func (js *jobSettings) window() time.Duration {
	if js.misfire.kind == misfireSkip {
		return js.startDeadline
	}
	return max(js.startDeadline, js.catchUp)
}
