package gocronlock

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// maxClaims bounds the list, which travels with every claim: some 4 KiB at most.
const maxClaims = 256

// claims are the times at which ticks were claimed, by the clocks of those who did, in Unix
// milliseconds and in the order of the claims. A list and not a high-water mark, since a replica
// whose clock is ahead must not shut out the others until they get there.
type claims struct {
	Claims []int64 `json:"gocron_claims"`
}

func readClaims(state []byte) (claims, error) {
	var c claims
	if state == nil {
		return c, nil
	}
	if err := json.Unmarshal(state, &c); err != nil || c.Claims == nil {
		return c, fmt.Errorf("%w: %.40q", ErrRegister, state)
	}
	return c, nil
}

// near tells whether a claim is so close to a time that both are for one tick.
func (c claims) near(at time.Time, interval time.Duration) bool {
	apart := interval.Milliseconds() * 3 / 4
	now := at.UnixMilli()
	return slices.ContainsFunc(c.Claims, func(claim int64) bool {
		return now-apart < claim && claim < now+apart
	})
}

// with adds a claim, and drops the oldest where there are too many.
func (c claims) with(at time.Time) []byte {
	all := append(slices.Clone(c.Claims), at.UnixMilli())
	text, err := json.Marshal(claims{all[max(0, len(all)-maxClaims):]})
	if err != nil {
		panic(err) // integers: cannot be
	}
	return text
}
