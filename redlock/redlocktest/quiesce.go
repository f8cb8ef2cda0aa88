package redlocktest

import (
	"bytes"
	"runtime"
	"time"
)

// How long a go-redis client may keep a goroutine after it was closed: one
// second of sleep between two probes of a server that it could not reach, or
// four backoffs of 100 ms between dials, with room to spare.
const (
	quiesceLimit = 1500 * time.Millisecond
	quiesceStep  = 25 * time.Millisecond
)

// quiesce waits for the goroutines that closed go-redis clients leave behind
// where a dial failed: they would trip a leak check, and in a testing/synctest
// bubble, whose clock stops with the test, they would never end. go-redis has
// no other sign of them than their stack.
func quiesce() {
	for waited := time.Duration(0); waited < quiesceLimit && dialling(); waited += quiesceStep {
		time.Sleep(quiesceStep)
	}
}

func dialling() bool {
	stacks := allStacks()
	return bytes.Contains(stacks, []byte("pool.(*ConnPool).tryDial(")) ||
		bytes.Contains(stacks, []byte("pool.(*ConnPool).dialConn("))
}

func allStacks() []byte {
	for size := 1 << 18; ; size *= 4 {
		b := make([]byte, size)
		if n := runtime.Stack(b, true); n < size || size >= 1<<28 {
			return b[:n]
		}
	}
}
