package main

import (
	"math"
	"slices"
	"sync"
	"time"
)

// forever is the end of what is not known to end.
const forever = math.MaxInt64

// claim is one acquisition, from the asking to the end, as the client was told.
type claim struct {
	process *process
	load    string
	name    string
	token   int64

	asked int64
	at    int64 // acquired; 0 if it was not
	until int64 // the latest end of the validity that was told; 0: none was
	ended int64 // the holder does not rely on it any more; 0: it was killed first
	why   string
	state string
	saves []save

	result   string // of the acquisition: "" or the class of the error
	released string // of the release
	freed    int64
}

// save is one save under a claim.
type save struct {
	begun, done int64
	value       string
	err         string
}

// start and end are the interval in which the holder was told that it holds. Empty where the
// end comes first.
func (c *claim) start() int64 { return c.at }

func (c *claim) end() int64 {
	end := int64(forever)
	if c.until != 0 {
		end = c.until
	}
	if c.ended != 0 {
		end = min(end, c.ended)
	} else if c.until == 0 {
		if killed := c.process.Killed(); killed != 0 {
			end = killed
		}
	}
	return end
}

func (c *claim) holds() bool { return c.at != 0 && c.at < c.end() }

// yes is a time at which IsLeader said yes: somewhere between the two.
type yes struct {
	process    *process
	begin, end int64
}

// execution is one run of a tick.
type execution struct {
	process   *process
	job, tick string
	at, token int64
}

// history is all that the clients have reported.
type history struct {
	mu       sync.Mutex
	open     map[*process]map[uint64]*claim
	stopped  map[*process]bool
	claims   []*claim
	leads    []yes
	runs     []execution
	writes   map[string]int // by result
	extended int
	cycles   []time.Duration
	last     map[string]int64 // stamp of the last acquisition, by load and name
	starts   int
}

func newHistory() *history {
	return &history{
		open: map[*process]map[uint64]*claim{}, stopped: map[*process]bool{},
		writes: map[string]int{}, last: map[string]int64{},
	}
}

func (h *history) join(p *process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open[p] = map[uint64]*claim{}
	h.starts++
}

func (h *history) add(p *process, e event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch e.Kind {
	case asked:
		c := &claim{process: p, load: e.Load, name: e.Load + "/" + e.Name, asked: e.At}
		h.open[p][e.ID] = c
		h.claims = append(h.claims, c)
		return
	case stopped:
		h.stopped[p] = true
		return
	case leading:
		h.leads = append(h.leads, yes{p, e.Start, e.At})
		return
	case cycled:
		if e.Err == "" {
			h.cycles = append(h.cycles, time.Duration(e.Until-e.At))
		}
		return
	case run:
		h.runs = append(h.runs, execution{p, e.Name, e.Value, e.At, e.Token})
		return
	case wrote:
		h.writes[e.Err]++
		return
	}
	c := h.open[p][e.ID]
	if c == nil {
		return
	}
	switch e.Kind {
	case refused:
		c.result = e.Err
		delete(h.open[p], e.ID)
	case held:
		c.at, c.token, c.until, c.state = e.At, e.Token, e.Until, e.Value
		h.last[c.name] = e.At
	case extended:
		h.extended++
		c.until = max(c.until, e.Until)
	case saving:
		c.saves = append(c.saves, save{begun: e.At, value: e.Value})
	case saved:
		s := &c.saves[len(c.saves)-1]
		s.done, s.err = e.At, e.Err
	case ended:
		if c.ended == 0 {
			c.ended, c.why = e.At, e.Err
		}
	case released:
		c.released, c.freed = e.Err, e.At
		delete(h.open[p], e.ID)
	}
}

// served tells whether so many processes have acquired something.
func (h *history) served(clients int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := map[*process]bool{}
	for _, c := range h.claims {
		if c.at != 0 {
			seen[c.process] = true
		}
	}
	return len(seen) >= clients
}

// recovered tells whether every name that was ever acquired has been acquired after that moment.
func (h *history) recovered(since int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, at := range h.last {
		if at <= since {
			return false
		}
	}
	return len(h.last) > 0
}

func (h *history) cycleTimes() []time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.cycles)
}

// snapshot is what there is so far: claims that hold, by name, each sorted by its start.
func (h *history) snapshot() map[string][]*claim {
	h.mu.Lock()
	defer h.mu.Unlock()
	byName := map[string][]*claim{}
	for _, c := range h.claims {
		if c.at != 0 {
			own := *c // later events change the original
			byName[c.name] = append(byName[c.name], &own)
		}
	}
	for _, claims := range byName {
		slices.SortFunc(claims, func(a, b *claim) int { return int(a.at - b.at) })
	}
	return byName
}
