package dashboard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/quorum"
	"github.com/quorate/quorate/redlock"
)

// nodesView is what is known of the nodes. begun is the survey's alone.
type nodesView struct {
	begun time.Time

	mu    sync.Mutex
	known bool
	state fleetState
	seen  time.Time // when a quorum answered last
}

// A nodeRow is what the page is told of a node, or of a shard of one.
type nodeRow struct {
	ID         string    `json:"id,omitempty"`
	Node       string    `json:"node"`
	Up         bool      `json:"up"`
	Latency    float64   `json:"latency"`    // ms
	Quarantine int64     `json:"quarantine"` // ms
	Uptime     int64     `json:"uptime"`     // ms
	Offset     float64   `json:"offset"`     // ms
	Version    string    `json:"version,omitempty"`
	Role       string    `json:"role,omitempty"`
	Replicas   int       `json:"replicas,omitempty"`
	Warnings   []string  `json:"warnings,omitempty"`
	Err        string    `json:"err,omitempty"`
	Shards     []nodeRow `json:"shards,omitempty"`
}

// A fleetState sums the nodes up.
type fleetState struct {
	State   string `json:"state"` // one of the below
	Size    int    `json:"size"`
	Up      int    `json:"up"`
	Counted int    `json:"counted"` // nodes whose votes count
	Quorum  int    `json:"quorum"`
	// Sharded says that nodes are clusters: then the numbers are of those of which each shard answers, or
	// counts, and do not tell whether there is a quorum.
	Sharded bool   `json:"sharded,omitempty"`
	Err     string `json:"err,omitempty"`
}

// What becomes of the fleet.
const (
	unknown     = "unknown"
	healthy     = "ok"
	degraded    = "degraded"    // works, and not all nodes count
	noQuorum    = "noquorum"    // too few answer
	quarantined = "quarantined" // enough answer, and too many of them restarted lately
	unfit       = "unfit"       // two nodes are one server, or one is a replica
	closed      = "closed"      // the Locker is
)

// A fleetRow is the state of the fleet, and how old what is shown is.
type fleetRow struct {
	fleetState
	ID       string    `json:"id"`
	Interval int64     `json:"interval"` // ms between two looks at the nodes
	Nodes    int64     `json:"nodes"`    // when a quorum of nodes answered last
	Names    namesRow  `json:"names"`
	Limits   limitsRow `json:"limits"`
	Actions  bool      `json:"actions"`
	Records  bool      `json:"records"` // there is a Recorder
	Identity string    `json:"identity"`
}

// limitsRow tells what is left out of the lists of elections and jobs.
type limitsRow struct {
	Elections int `json:"elections"` // in all
	Jobs      int `json:"jobs"`      // in all
}

func (h *Handler) lookAtNodes(ctx context.Context) {
	v := &h.nodes
	v.begun = time.Now()
	reports, err := h.locker.Check(ctx)
	if ctx.Err() != nil {
		return
	}
	state := sumUp(reports, err)
	v.mu.Lock()
	v.known, v.state = true, state
	if state.State == healthy || state.State == degraded || state.State == quarantined {
		v.seen = time.Now()
	}
	v.mu.Unlock()
	if len(reports) > 0 {
		items := make([]item, len(reports))
		for i := range reports {
			row := nodeRowOf(&reports[i])
			row.ID = fmt.Sprint(i)
			items[i] = item{row.ID, row}
		}
		h.board.put(nodesSection, items)
	}
	h.showElections()
	h.showContention()
	h.showFleet()
}

// sumUp says what the nodes' answers amount to.
func sumUp(reports []redlock.NodeReport, err error) fleetState {
	s := fleetState{Size: len(reports), Quorum: quorum.Size(len(reports)), Err: explain(err)}
	for i := range reports {
		r := &reports[i]
		s.Sharded = s.Sharded || len(r.Shards) > 0
		if r.Up {
			s.Up++
		}
		if r.Up && r.Err == nil && r.Quarantine == 0 {
			s.Counted++
		}
	}
	switch {
	case errors.Is(err, redlock.ErrClosed):
		s.State = closed
	case errors.Is(err, redlock.ErrSameServer), errors.Is(err, redlock.ErrReplica):
		s.State = unfit
	case errors.Is(err, redlock.ErrNoQuorum):
		s.State = noQuorum
	case s.Counted < s.Quorum && !s.Sharded:
		s.State = quarantined
	case s.Counted < s.Size || err != nil:
		s.State = degraded
	default:
		s.State = healthy
	}
	return s
}

func nodeRowOf(r *redlock.NodeReport) nodeRow {
	row := nodeRow{
		Node: show(r.Node), Up: r.Up, Latency: milliseconds(r.Latency), Quarantine: r.Quarantine.Milliseconds(),
		Uptime: r.Uptime.Milliseconds(), Offset: milliseconds(r.ClockOffset),
		Version: brief(r.Version), Role: brief(r.Role), Replicas: r.Replicas, Err: explain(r.Err),
	}
	for _, w := range r.Warnings {
		row.Warnings = append(row.Warnings, brief(w))
	}
	for i := range r.Shards {
		row.Shards = append(row.Shards, nodeRowOf(&r.Shards[i]))
	}
	return row
}

func (h *Handler) showFleet() {
	h.showing.Lock()
	defer h.showing.Unlock()
	v := &h.nodes
	v.mu.Lock()
	state, seen, known := v.state, v.seen, v.known
	v.mu.Unlock()
	if !known {
		state.State = unknown
	}
	row := fleetRow{
		fleetState: state, ID: "fleet", Interval: h.settings.interval.Milliseconds(), Nodes: stamp(seen),
		Names: h.names.row(), Limits: limitsRow{Elections: h.elections.count(), Jobs: h.ledgers.count()},
		Actions: h.settings.actions, Records: h.settings.recorder != nil, Identity: show(h.locker.Identity()),
	}
	h.board.put(fleetSection, []item{{row.ID, row}})
}

// A contentionRow is what the page is told of a name that this process waited for.
type contentionRow struct {
	ID       string  `json:"id"`
	Name     string  `json:"name"`
	Acquired int     `json:"acquired"`
	Refused  int     `json:"refused"`
	Wait     float64 `json:"wait"` // ms, as the others
	MeanWait float64 `json:"meanWait"`
	MaxWait  float64 `json:"maxWait"`
	MeanHeld float64 `json:"meanHeld"`
	MaxHeld  float64 `json:"maxHeld"`
	Ended    int     `json:"ended"`
	Last     int64   `json:"last"`
}

// maxContention is how many names are shown of those that were waited for.
const maxContention = 20

func (h *Handler) showContention() {
	if h.settings.recorder == nil {
		return
	}
	var items []item
	for _, c := range h.settings.recorder.Top(maxContention) {
		id := idOf(c.Name)
		items = append(items, item{id, contentionRow{
			ID: id, Name: show(c.Name), Acquired: c.Acquired, Refused: c.Refused, Wait: milliseconds(c.Wait),
			MeanWait: milliseconds(c.MeanWait()), MaxWait: milliseconds(c.MaxWait),
			MeanHeld: milliseconds(c.MeanHeld()), MaxHeld: milliseconds(c.MaxHeld), Ended: c.Ended, Last: stamp(c.Last),
		}})
	}
	h.board.put(contentionSection, items)
}
