package dashboard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/scheduler"
)

const (
	maxNames = 20_000 // held names that are kept
	maxShown = 200    // and shown at a time
	// maxTermsRead is how many elections are looked at: each brings what its leaders saved.
	maxTermsRead = 1000
	maxQuery     = redlock.MaxNameLength
)

// namesView is what the last listings said. begun and took are the survey's alone.
type namesView struct {
	begun time.Time
	took  time.Duration

	mu      sync.Mutex
	held    []heldName // in the order of the names; not changed once it is here
	total   int
	version int
	seen    time.Time // when the last listing that succeeded began
	failure string
	refused bool // for want of rights
}

// A heldName is a name that a node has a lock of.
type heldName struct {
	ID     string        `json:"id"`
	Name   string        `json:"name"`
	Kind   string        `json:"kind"`   // leader, job or lock
	Holder string        `json:"holder"` // of a quorum; "" for none
	Token  redlock.Token `json:"token"`  // at most 2^53
	Since  int64         `json:"since"`  // about; 0 where the token is no time
	TTL    int64         `json:"ttl"`    // ms, when it was listed
	Nodes  int           `json:"nodes"`  // that have a lock of it
	Silent int           `json:"silent"` // that told nothing
	hay    string        // what the filter looks into
}

// namesRow sums the names up.
type namesRow struct {
	Total   int    `json:"total"`
	Version int    `json:"version"`
	Seen    int64  `json:"seen"`
	Err     string `json:"err,omitempty"`
	Refused bool   `json:"refused,omitempty"`
}

func (v *namesView) row() namesRow {
	v.mu.Lock()
	defer v.mu.Unlock()
	return namesRow{Total: v.total, Version: v.version, Seen: stamp(v.seen), Err: v.failure, Refused: v.refused}
}

// lookAtNames lists what is held, and the jobs, and asks about these.
func (h *Handler) lookAtNames(ctx context.Context) {
	v := &h.names
	v.begun = time.Now()
	err := h.list(ctx)
	v.took = time.Since(v.begun)
	if ctx.Err() != nil {
		return
	}
	v.mu.Lock()
	v.failure, v.refused = explain(err), err != nil && strings.Contains(err.Error(), "NOPERM")
	v.mu.Unlock()
	if err == nil {
		h.lookAtJobs(ctx)
	}
	h.showElections()
	h.showFleet()
}

// list takes over what two listings say, if both succeed: half of what is held would look like the
// end of the other half.
func (h *Handler) list(ctx context.Context) error {
	begun := time.Now()
	var held []heldName
	var terms []leader.Term
	jobs := map[string]redlock.Token{}
	total, found := 0, 0
	for status, err := range h.locker.List(ctx, redlock.Filter{Held: true}) {
		if err != nil {
			return err
		}
		if total++; len(held) < maxNames {
			held = append(held, heldNameOf(&status, begun))
		}
		if term, ok := leader.TermOf(status); ok {
			if found++; len(terms) < maxTermsRead {
				terms = append(terms, term)
			}
		}
	}
	for status, err := range h.locker.List(ctx, redlock.Filter{Prefix: scheduler.JobPrefix}) {
		if err != nil {
			return err
		}
		if job, ok := scheduler.JobOf(status); ok {
			jobs[job] = status.Token
		}
	}
	h.elections.listed(terms, found, begun)
	h.ledgers.listed(jobs)
	v := &h.names
	v.mu.Lock()
	defer v.mu.Unlock()
	v.held, v.total, v.seen = held, total, begun
	v.version++
	return nil
}

func heldNameOf(status *redlock.Status, now time.Time) heldName {
	n := heldName{
		ID: idOf(status.Name), Name: show(status.Name), Kind: "lock", Holder: brief(status.Holder),
		Token: status.Token, TTL: status.TTL.Milliseconds(), Since: stamp(beginOf(status.Token, now)),
	}
	if term, ok := leader.TermOf(*status); ok && term.Number > 0 {
		n.Kind = "leader"
	} else if _, ok := scheduler.JobOf(*status); ok {
		n.Kind = "job"
	}
	for i := range status.Nodes {
		if status.Nodes[i].Holder != "" {
			n.Nodes++
		}
		if status.Nodes[i].Err != nil {
			n.Silent++
		}
	}
	n.hay = strings.ToLower(n.Name + "\n" + n.Holder)
	return n
}

// beginOf is when a token was proposed, if it is a time that can be true.
func beginOf(token redlock.Token, now time.Time) time.Time {
	at := time.UnixMicro(int64(token))
	if at.After(now.Add(time.Minute)) || at.Before(now.AddDate(-1, 0, 0)) {
		return time.Time{}
	}
	return at
}

// A namesAnswer is a part of the held names.
type namesAnswer struct {
	namesRow
	Kept     int        `json:"kept"`     // of which the filter knows
	Matching int        `json:"matching"` // of these
	Identity string     `json:"identity"` // of who answers: behind a load balancer not who the stream is from
	Rows     []heldName `json:"rows"`
}

// orders are the columns by which names can be sorted.
var orders = map[string]func(a, b *heldName) int{
	"name":   func(a, b *heldName) int { return strings.Compare(a.Name, b.Name) },
	"kind":   func(a, b *heldName) int { return strings.Compare(a.Kind, b.Kind) },
	"holder": func(a, b *heldName) int { return strings.Compare(a.Holder, b.Holder) },
	"age":    func(a, b *heldName) int { return cmp.Compare(a.age(), b.age()) },
	"ttl":    func(a, b *heldName) int { return cmp.Compare(a.TTL, b.TTL) },
	"token":  func(a, b *heldName) int { return cmp.Compare(a.Token, b.Token) },
}

// age is that of a name for sorting, by any origin; what is not known counts as young.
func (n *heldName) age() int64 {
	if n.Since == 0 {
		return math.MinInt64
	}
	return -n.Since
}

// find gives the names whose text has q in it, by the order given: a column, with a minus before it for the
// largest first.
func (v *namesView) find(q, sort string) (namesAnswer, error) {
	column, descending := strings.CutPrefix(cmp.Or(sort, "-age"), "-")
	order, ok := orders[column]
	if !ok {
		return namesAnswer{}, errors.New("unknown order; sort by name, kind, holder, age, ttl or token")
	}
	answer := namesAnswer{namesRow: v.row(), Rows: []heldName{}}
	v.mu.Lock()
	held := v.held
	v.mu.Unlock()
	answer.Kept = len(held)
	q = strings.ToLower(strings.TrimSpace(q))
	var found []*heldName
	for i := range held {
		if strings.Contains(held[i].hay, q) {
			found = append(found, &held[i])
		}
	}
	answer.Matching = len(found)
	slices.SortStableFunc(found, func(a, b *heldName) int {
		if descending {
			return order(b, a)
		}
		return order(a, b)
	})
	for _, n := range found[:min(len(found), maxShown)] {
		answer.Rows = append(answer.Rows, *n)
	}
	return answer, nil
}

// serveNames answers what was last listed; it asks no node.
func (h *Handler) serveNames(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	q := query.Get("q")
	if len(q) > maxQuery {
		http.Error(w, "dashboard: the filter is longer than a name can be", http.StatusBadRequest)
		return
	}
	answer, err := h.names.find(q, query.Get("sort"))
	if err != nil {
		http.Error(w, "dashboard: "+err.Error(), http.StatusBadRequest)
		return
	}
	answer.Identity = show(h.locker.Identity())
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // who does not read it to the end has gone
}
