package leader

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/quorate/quorate/redlock"
)

// health is what Healthz answers.
type health struct {
	Name    string        `json:"name"`
	Leader  string        `json:"identity"`
	Leading bool          `json:"leading"`
	Term    redlock.Token `json:"term,omitempty"`
	// Validity is what is left of the lease's, in seconds.
	Validity float64 `json:"validity_seconds,omitempty"`
	Problem  string  `json:"problem,omitempty"`
	// Unfit is why this replica is no candidate. That is no problem of the process.
	Unfit string `json:"unfit,omitempty"`
}

// Healthz is a handler for liveness probes. It answers 503 Service Unavailable when the leading
// function runs though its lease is over, or is about to be because it has not been extended for long
// (less than an 8th of the TTL is left), or though its context ended longer ago than WithStopGrace: then
// it is best to restart the process. Otherwise it answers 200 OK: whoever does not lead is healthy, also
// when its health check fails. The body is JSON.
func (e *Elector) Healthz() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := e.health()
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		if h.Problem != "" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(h)
	})
}

func (e *Elector) health() health {
	h := health{Name: e.name, Leader: e.identity}
	e.mu.Lock()
	t, f := e.current, e.fitness
	e.mu.Unlock()
	if unfit := f.unfit(); unfit != nil {
		h.Unfit = unfit.Error()
	}
	if t == nil {
		return h
	}
	over, left := t.lease.Err(), t.lease.Remaining()
	h.Term, h.Leading, h.Validity = t.term.Number, over == nil, left.Seconds()
	switch {
	case t.isStuck():
		h.Problem = ErrStuck.Error()
	case over != nil:
		h.Problem = "the leading function still runs: " + over.Error()
	case left < e.settings.ttl/8:
		h.Problem = fmt.Sprintf("the lease was not extended for long: it ends in %v", left.Round(time.Millisecond))
	}
	return h
}
