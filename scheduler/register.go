package scheduler

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/quorate/quorate/redlock"
)

// registerVersion is raised when an older reader would draw a wrong conclusion.
const registerVersion = 1

// A register is the state of a job's lease: what the fleet knows of the job's ticks. Times are
// Unix milliseconds.
type register struct {
	Version   int           `json:"v"`
	Started   int64         `json:"started"`             // the tick claimed last
	Completed int64         `json:"completed,omitempty"` // the tick completed last
	Attempt   int           `json:"attempt"`             // of the tick claimed last
	By        string        `json:"by"`                  // identity of the replica that claimed it
	Token     redlock.Token `json:"token"`               // of the lease that it was claimed with
	Settled   ticks         `json:"settled"`             // ticks that were started, or skipped for good
}

// open reports whether the run of the last claim has not been completed. If nobody holds the
// lease, it was interrupted.
func (r *register) open() bool { return r.Started != r.Completed }

func (r *register) started() time.Time { return time.UnixMilli(r.Started) }

func readRegister(state []byte) (register, error) {
	var r register
	if state == nil {
		return r, nil
	}
	if err := json.Unmarshal(state, &r); err != nil {
		return r, fmt.Errorf("%w: %w; something else uses the name", ErrRegister, err)
	}
	if r.Version != registerVersion {
		return r, fmt.Errorf("%w: it has version %d and this replica knows version %d; update it", ErrRegister, r.Version, registerVersion)
	}
	return r, nil
}

func (r *register) encode() []byte {
	r.Version = registerVersion
	b, err := json.Marshal(r)
	if err != nil {
		panic("scheduler: a register of numbers and strings can always be encoded: " + err.Error())
	}
	return b
}
