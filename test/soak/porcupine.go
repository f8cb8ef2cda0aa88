package main

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"
)

// lockState is what a lock with fencing tokens is: who holds it, 0 for nobody, and the highest
// token that was ever given out.
type lockState struct{ holder, highest int64 }

// lockOp is an acquisition, or the end of one. A library without tokens has numbers in the order
// of the acquisitions, which the checker may not rely on.
type lockOp struct {
	end    bool
	claim  int64 // which
	token  int64
	tokens bool
}

// lockModel is the sequential lock. An acquisition takes effect between the asking and the
// return. The end of a claim takes effect at the end of its interval or at any later time, since
// nobody is told that a lease has run out on the nodes. So a history can be put in order if, and
// only if, no two intervals overlap and tokens grow.
var lockModel = porcupine.Model{
	Init: func() any { return lockState{} },
	Step: func(state, input, _ any) (bool, any) {
		s, op := state.(lockState), input.(lockOp)
		if op.end {
			return s.holder == op.claim, lockState{0, s.highest}
		}
		if s.holder != 0 || op.tokens && op.token <= s.highest {
			return false, s
		}
		return true, lockState{op.claim, op.token}
	},
	DescribeOperation: func(input, _ any) string {
		op := input.(lockOp)
		if op.end {
			return fmt.Sprintf("end of %d", op.token)
		}
		return fmt.Sprintf("acquire → %d", op.token)
	},
}

// operations is the history of one name. Acquisitions whose return was never reported, since the
// process was killed, have no holder who could have been told, and are left out; so are those
// whose validity was over by the time of the return.
func operations(claims []*claim, tokens bool) []porcupine.Operation {
	var ops []porcupine.Operation
	for i, c := range claims {
		if !c.holds() {
			continue
		}
		op := lockOp{claim: int64(i + 1), token: c.token, tokens: tokens}
		ops = append(ops, porcupine.Operation{ClientId: i, Input: op, Call: c.asked, Return: c.at})
		if end := c.end(); end != forever {
			op.end = true
			ops = append(ops, porcupine.Operation{ClientId: i, Input: op, Call: end, Return: forever})
		}
	}
	return ops
}

// linearize has porcupine judge the history of one name.
func (k *checker) linearize(name string, claims []*claim, tokens bool) {
	switch porcupine.CheckOperationsTimeout(lockModel, operations(claims, tokens), 2*time.Minute) {
	case porcupine.Illegal:
		k.found(illegal, k.begun, "the history of %s", name)
	case porcupine.Unknown:
		k.found(undecided, k.begun, "the history of %s within 2 minutes", name)
	}
}
