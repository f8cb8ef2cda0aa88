package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/test/rig"
)

// report is the outcome of a run.
type report struct {
	Lib      string        `json:"lib"`
	Profile  profile       `json:"profile"`
	Seed     uint64        `json:"seed"`
	Duration time.Duration `json:"duration"`
	Machine  string        `json:"machine"`
	Nodes    int           `json:"nodes"`
	Clients  int           `json:"clients"`
	TTL      time.Duration `json:"ttl"`

	Faults     map[string]int            `json:"faults"`
	Processes  int                       `json:"processes"`
	Operations map[string]map[string]int `json:"operations"` // by load, by outcome
	Ends       map[string]int            `json:"ends"`       // of claims that were acquired
	Writes     map[string]int            `json:"writes"`
	Ledger     int                       `json:"ledger"` // writes that the resource carried out
	Runs       int                       `json:"runs"`
	Terms      int                       `json:"terms"`
	Extensions int                       `json:"extensions"`

	StateReads     int `json:"state_reads"`
	StateForgotten int `json:"state_forgotten"`

	HandOvers   int            `json:"hand_overs"`
	LongestWait time.Duration  `json:"longest_wait"`
	Outage      outage         `json:"outage"`  // of all names at once
	ByName      []outage       `json:"by_name"` // of each name
	HungCycle   time.Duration  `json:"hung"`    // median, with one node hung; 0 if it was not measured
	HungCycles  int            `json:"hung_n"`  // how many
	LeftBehind  []string       `json:"left"`    // locks on the nodes at the end
	Counted     map[string]int `json:"counted"` // violations by kind

	Violations []violation `json:"violations"` // those that fail the run come first
	Failing    int         `json:"failing"`
}

// outage is the longest time in which nobody acquired a name.
type outage struct {
	Name   string        `json:"name"`
	At     time.Duration `json:"at"`
	For    time.Duration `json:"for"`
	Faults []string      `json:"faults"` // that were active
}

func (r *report) failed() bool { return r.Failing > 0 }

// fails tells which violations fail a run. Beyond the assumptions that is only what the gate
// promises, which needs none, and that the fleet recovers.
func fails(p profile, kind string) bool {
	if p == within {
		return true
	}
	switch kind {
	case staleWrite, lostUpdate, notRecovered, notEnded:
		return true
	}
	return false
}

type verdictInput struct {
	stuck   string
	late    []bool
	left    []string
	ledgers map[string][]string
	hung    []time.Duration
}

// report judges the run.
func (h *harness) report(in verdictInput) *report {
	tokens := h.lib == "quorate"
	r := &report{
		Lib: h.lib, Profile: h.profile, Seed: h.seed, Duration: time.Duration(rig.Stamp() - h.begun).Round(time.Second),
		Machine: fmt.Sprintf("%s/%s, %d CPUs", runtime.GOOS, runtime.GOARCH, runtime.NumCPU()),
		Nodes:   h.nodes, Clients: h.config.clients, TTL: h.ttl,
		Faults: map[string]int{}, Operations: map[string]map[string]int{}, Ends: map[string]int{}, Counted: map[string]int{},
		LeftBehind: in.left, HungCycles: len(in.hung),
	}
	if len(in.hung) > 0 {
		r.HungCycle = slices.Sorted(slices.Values(in.hung))[len(in.hung)/2]
	}
	var forgot []window
	for _, a := range h.active {
		r.Faults[a.Kind]++
		if strings.Contains(a.Kind, "restarted") && a.Who < 0 || strings.Contains(a.Kind, "forgot") {
			forgot = append(forgot, a.window)
		}
	}

	k := &checker{begun: h.begun}
	names := h.history.snapshot()
	h.history.mu.Lock()
	defer h.history.mu.Unlock()
	r.Processes, r.Extensions, r.Writes, r.Runs = h.history.starts, h.history.extended, h.history.writes, len(h.history.runs)
	for _, c := range h.history.claims {
		outcome := c.result
		switch {
		case c.at != 0:
			outcome = "acquired"
			r.Ends[cmp.Or(c.why, c.released, "released")]++
			if c.load == "lock" { // candidates wait for a whole term
				r.LongestWait = max(r.LongestWait, time.Duration(c.at-c.asked))
			}
		case outcome == "":
			outcome = "killed, or stopped, while asking"
		}
		if r.Operations[c.load] == nil {
			r.Operations[c.load] = map[string]int{}
		}
		r.Operations[c.load][outcome]++
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		claims := names[name]
		k.overlaps(name, claims)
		if tokens {
			k.regressions(name, claims)
		}
		k.linearize(name, claims, tokens)
		if strings.HasPrefix(name, "lock/") {
			read, forgotten := k.states(name, claims, forgot)
			r.StateReads += read
			r.StateForgotten += forgotten
		}
		if strings.HasPrefix(name, "term/") {
			r.Terms += len(claims)
			k.leaders(h.history.leads, claims)
		}
		for i := 1; i < len(claims); i++ {
			if claims[i].process != claims[i-1].process {
				r.HandOvers++
			}
		}
	}
	k.ticks(h.history.runs)
	for _, resource := range slices.Sorted(maps.Keys(in.ledgers)) {
		k.ledger(resource, tokens && !h.ungated, in.ledgers[resource])
		r.Ledger += len(in.ledgers[resource])
	}
	if in.stuck != "" {
		k.found(notRecovered, rig.Stamp(), "%s", in.stuck)
	}
	for i, late := range in.late {
		if late {
			k.found(notEnded, rig.Stamp(), "%s did not end within a minute, or not well; its goroutines are in its log", h.clients[i].process.config.identity())
		}
	}
	if tokens {
		for _, key := range in.left {
			k.found(stray, rig.Stamp(), "%s", key)
		}
	}
	r.outages(h, names)

	for _, v := range k.violations {
		r.Counted[v.Kind]++
		if fails(h.profile, v.Kind) {
			r.Failing++
		}
	}
	slices.SortStableFunc(k.violations, func(a, b violation) int {
		if fails(h.profile, a.Kind) != fails(h.profile, b.Kind) {
			if fails(h.profile, a.Kind) {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.At, b.At)
	})
	r.Violations = k.violations
	return r
}

// outages finds the longest stretches between one acquisition of a lock and the next.
func (r *report) outages(h *harness, names map[string][]*claim) {
	var all []int64
	longest := func(name string, at []int64) outage {
		o := outage{Name: name}
		var begin, end int64
		for i := 1; i < len(at); i++ {
			if d := time.Duration(at[i] - at[i-1]); d > o.For {
				o.For, begin, end = d, at[i-1], at[i]
			}
		}
		o.At = time.Duration(begin - h.begun)
		for _, a := range h.active {
			if a.begin < end && (a.end == 0 || a.end > begin) {
				o.Faults = append(o.Faults, a.String())
			}
		}
		return o
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !strings.HasPrefix(name, "lock/") {
			continue
		}
		var at []int64
		for _, c := range names[name] {
			if c.at <= h.measured {
				at = append(at, c.at)
			}
		}
		all = append(all, at...)
		r.ByName = append(r.ByName, longest(name, at))
	}
	if len(all) > 0 {
		slices.Sort(all)
		r.Outage = longest("any name", all)
	}
}

func (r *report) json(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

func (r *report) String() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	counts := func(title string, m map[string]int) {
		if len(m) == 0 {
			return
		}
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(m)) {
			parts = append(parts, fmt.Sprintf("%s %d", cmp.Or(name, "ok"), m[name]))
		}
		line("%-12s %s", title, strings.Join(parts, ", "))
	}
	line("%s, %s the assumptions, seed %d, %v, %d nodes, %d clients (%d processes), TTL %v, %s",
		r.Lib, r.Profile, r.Seed, r.Duration, r.Nodes, r.Clients, r.Processes, r.TTL, r.Machine)
	counts("faults", r.Faults)
	for _, load := range slices.Sorted(maps.Keys(r.Operations)) {
		counts(load, r.Operations[load])
	}
	counts("ends", r.Ends)
	counts("writes", r.Writes)
	line("%-12s terms %d, runs %d, writes carried out %d, extensions seen %d, states read %d (%d forgotten by restarted nodes)",
		"also", r.Terms, r.Runs, r.Ledger, r.Extensions, r.StateReads, r.StateForgotten)
	line("%-12s %d, longest wait for a lock that was then acquired %v", "hand-overs", r.HandOvers, r.LongestWait.Round(time.Millisecond))
	for _, o := range append([]outage{r.Outage}, r.ByName...) {
		if o.Name == "" {
			continue // no load with locks
		}
		line("%-12s %s: nobody acquired for %v, from %v on; faults then: %s", "outage", o.Name, o.For.Round(time.Millisecond),
			o.At.Round(time.Millisecond), cmp.Or(strings.Join(o.Faults, "; "), "none"))
	}
	if r.HungCycles > 0 {
		line("%-12s %v with one node hung (median of %d)", "cycle", r.HungCycle.Round(10*time.Microsecond), r.HungCycles)
	}
	line("%-12s %d", "left behind", len(r.LeftBehind))
	counts("violations", r.Counted)
	for i, v := range r.Violations {
		if i == 40 {
			line("  … and %d more", len(r.Violations)-i)
			break
		}
		mark := "counted"
		if fails(r.Profile, v.Kind) {
			mark = "FAILED"
		}
		line("  %s at %v: %s: %s", mark, v.At.Round(time.Millisecond), v.Kind, v.Detail)
	}
	if r.Failing == 0 {
		line("%-12s none that fails the run", "violations")
	}
	return b.String()
}
