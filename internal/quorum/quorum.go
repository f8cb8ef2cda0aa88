// Package quorum is the arithmetic of majorities and validity, and nothing else: no clock, no
// network, no state. It is checked against a second, deliberately dumb implementation.
package quorum

import "time"

// Size is the number of nodes of n that make a majority, "N/2+1". Two majorities of one fleet
// always share a node.
func Size(n int) int { return n/2 + 1 }

// An Outcome is what the votes so far decide.
type Outcome int

const (
	// Pending means that it depends on nodes that have not answered.
	Pending Outcome = iota
	// Won means that a majority said yes, whatever the others say.
	Won
	// Lost means that no majority can say yes any more, whatever the others say.
	Lost
)

// Decide tells the outcome for n nodes of which yes said yes and no said no or cannot say.
func Decide(n, yes, no int) Outcome {
	switch {
	case yes >= Size(n):
		return Won
	case n-no < Size(n):
		return Lost
	}
	return Pending
}

// Drift is what clocks of two machines may differ in rate over one TTL, plus the millisecond
// precision of Redis' expiry: 1 % of the TTL plus 2 ms.
func Drift(ttl time.Duration) time.Duration {
	return ttl/100 + 2*time.Millisecond
}

// Validity is what is left of a lease's TTL for its holder when elapsed has passed since before
// the first node was asked: "MIN_VALIDITY=TTL-(T2-T1)-CLOCK_DRIFT". It is never negative.
func Validity(ttl, elapsed time.Duration) time.Duration {
	return max(0, ttl-elapsed-Drift(ttl))
}
