package scheduler

import (
	"encoding/json"
	"fmt"
)

// What is kept under leases is JSON, and tells its version where an older reader could draw a wrong
// conclusion.

func decode(state []byte, into any) error {
	if err := json.Unmarshal(state, into); err != nil {
		return fmt.Errorf("%w: %w; something else uses the name", ErrRegister, err)
	}
	return nil
}

func checkVersion(found, known int) error {
	if found != known {
		return fmt.Errorf("%w: it has version %d and this replica knows version %d; update the older one", ErrRegister, found, known)
	}
	return nil
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("scheduler: what consists of numbers and strings can always be encoded: " + err.Error())
	}
	return b
}
