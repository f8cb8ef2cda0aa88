package redlock

import (
	"fmt"
	"sync/atomic"
	"time"
)

// A Token is the fencing token of a lease: for one name, every acquisition has a higher token
// than all that came before it. Pass it to the resource that the lease guards, and let the
// resource refuse a token that is lower than one it has seen.
//
// Tokens are not consecutive. A proposal is the wall clock in microseconds, or one more than
// the highest fence seen where the nodes are ahead of this clock.
type Token int64

// maxToken is the largest integer that Lua's numbers, which are doubles, hold exactly.
const maxToken Token = 1<<53 - 1

// maxAhead bounds how far a fence seen at one name may drag the proposals for other names
// ahead of the wall clock. It covers hosts whose clocks disagree; a fence beyond it (a damaged
// key) stays a matter of its own name.
const maxAhead = Token(time.Hour / time.Microsecond)

// tokens proposes tokens, each higher than any that this process proposed before.
type tokens struct {
	last atomic.Int64
}

// next proposes a token above floor, the highest fence that is known for the name.
func (t *tokens) next(wall time.Time, floor Token) (Token, error) {
	if floor >= maxToken {
		return 0, errNoTokenAbove(floor)
	}
	if floor > Token(wall.UnixMicro())+maxAhead {
		return floor + 1, nil
	}
	for {
		last := t.last.Load()
		proposal := max(wall.UnixMicro(), last+1, int64(floor)+1)
		if Token(proposal) > maxToken {
			return 0, fmt.Errorf("%w: the wall clock says %s, for which the largest token, %d, is too small; set the clock",
				ErrTokensExhausted, wall.Format(time.RFC3339), maxToken)
		}
		if t.last.CompareAndSwap(last, proposal) {
			return Token(proposal), nil
		}
	}
}

func errNoTokenAbove(fence Token) error {
	return fmt.Errorf("%w: a node has fence %d and the largest token is %d; the fence key is damaged: delete it on all nodes while nobody holds the name",
		ErrTokensExhausted, fence, maxToken)
}

// observe takes note of a fence, so that the next proposal for its name is not refused.
func (t *tokens) observe(wall time.Time, fence Token) {
	if fence > Token(wall.UnixMicro())+maxAhead {
		return
	}
	for {
		last := t.last.Load()
		if int64(fence) <= last || t.last.CompareAndSwap(last, int64(fence)) {
			return
		}
	}
}
