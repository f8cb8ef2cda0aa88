package crontab

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"time"
)

// Jitter is a delay of whole milliseconds, at least 0 and less than max, that depends on nothing
// but the name of the job and the tick: it is the same on all replicas, and in all versions.
func Jitter(job string, tick time.Time, max time.Duration) time.Duration {
	if max <= time.Millisecond {
		return 0
	}
	choices := uint64((max-1)/time.Millisecond + 1)
	// The number first: it has a fixed length, so that no name and tick look like others.
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(make([]byte, 0, 128), uint64(tick.UnixMilli())), job...))
	// The upper half of the product spreads the hash evenly over the choices.
	delay, _ := bits.Mul64(binary.BigEndian.Uint64(sum[:]), choices)
	return time.Duration(delay) * time.Millisecond
}
