package main

import (
	"encoding/json"
	"io"
	"sync"

	"github.com/quorate/quorate/test/rig"
)

// recorder writes a client's events, through to the pipe: a kill -9 a moment later takes nothing
// back.
type recorder struct {
	mu sync.Mutex
	to io.Writer
}

func (r *recorder) write(e event) {
	if e.At == 0 {
		e.At = rig.Stamp()
	}
	line, err := json.Marshal(e)
	if err != nil {
		panic(err) // strings and numbers: cannot be
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// Where the harness is gone this process is about to end as well.
	_, _ = r.to.Write(append(line, '\n'))
}
