package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// A fault is one entry of the schedule.
type fault struct {
	Kind  string        `json:"kind"`
	At    time.Duration `json:"at"`
	For   time.Duration `json:"for"` // 0 where it has no end
	Nodes []int         `json:"nodes,omitempty"`
	Who   int           `json:"client"` // -1 for none
	Toxic *toxic        `json:"-"`
	Step  time.Duration `json:"step,omitempty"`
	PPM   int64         `json:"ppm,omitempty"`
}

func (f fault) String() string {
	text := f.Kind
	if f.Who >= 0 {
		text += fmt.Sprintf(" client %d", f.Who)
	}
	if len(f.Nodes) > 0 {
		text += fmt.Sprintf(" nodes %v", f.Nodes)
	}
	if f.Step != 0 {
		text += fmt.Sprintf(" by %v", f.Step)
	}
	if f.For > 0 {
		text += fmt.Sprintf(" for %v", f.For.Round(time.Millisecond))
	}
	return text
}

// profile is which faults there are.
type profile string

const (
	within profile = "within" // the assumptions: see doc.go
	beyond profile = "beyond" // them
)

// setup is what a schedule is made for.
type setup struct {
	profile  profile
	nodes    int
	clients  int
	ttl      time.Duration
	maxTTL   time.Duration
	duration time.Duration
	gap      time.Duration // between two faults, on average
	clocks   bool          // nodes have clocks that can be set
	only     []string      // kinds of faults; nil: all
}

// maxSkew is how far a client's wall clock is off at most, so that the clocks of two clients and
// the start deadline of a tick stay together below the maximum TTL.
func (s setup) maxSkew() time.Duration { return (s.maxTTL - time.Second) * 2 / 5 }

// durable tells which nodes have a memory that survives a restart, as far as an append-only file
// that is synced every second does.
func durable(node int) bool { return node >= 3 }

const fastest = 10_000 // parts per million: 1 %

// schedule lays the faults out, the same for the same seed. No node and no client has two faults
// of its own at once, and links none that exclude each other.
func schedule(seed uint64, s setup) []fault {
	r := rand.New(rand.NewPCG(seed, 0))
	l := &layout{setup: s, r: r, node: make([]time.Duration, s.nodes), client: make([]time.Duration, s.clients), link: make([][]time.Duration, s.clients)}
	for i := range l.link {
		l.link[i] = make([]time.Duration, s.nodes)
	}
	type weighted struct {
		weight int
		make   func() (fault, bool)
	}
	kinds := []weighted{
		{10, l.nodePause}, {6, l.nodeRestartEmpty}, {6, l.nodeDown}, {3, l.nodeRestart},
		{10, l.clientPause}, {5, l.clientKill}, {5, l.clientClock},
		{10, l.linkHold}, {8, l.linkSlow}, {4, l.linkReset}, {3, l.nodeCutOff}, {3, l.clientCutOff},
	}
	if s.clocks {
		kinds = append(kinds, weighted{4, l.nodeClockBack}, weighted{3, l.nodeRate})
	}
	if s.profile == beyond {
		kinds = append(kinds, weighted{4, l.majorityForgets}, weighted{4, l.clientSlow}, weighted{4, l.clientFarOff})
		if s.clocks {
			kinds = append(kinds, weighted{8, l.majorityForward})
		}
	}
	sum := 0
	for _, k := range kinds {
		sum += k.weight
	}

	var faults []fault
	for l.now < s.duration {
		n := r.IntN(sum)
		i := slices.IndexFunc(kinds, func(k weighted) bool { n -= k.weight; return n < 0 })
		f, ok := kinds[i].make()
		if !ok || s.only != nil && !slices.Contains(s.only, f.Kind) {
			l.now += s.gap / 100 // where all are busy, time has to pass
			continue
		}
		f.At = l.now
		faults = append(faults, f)
		l.now += time.Duration(r.ExpFloat64() * float64(s.gap))
	}
	return faults
}

// layout is a schedule in the making.
type layout struct {
	setup
	r   *rand.Rand
	now time.Duration

	node   []time.Duration // busy until
	client []time.Duration
	link   [][]time.Duration
}

func (l *layout) duration(low, high time.Duration) time.Duration { return between(l.r, low, high) }

// freeNode picks a node that has no fault. Where that would leave less than a majority it mostly
// does not: in between, the fleet has to get somewhere.
func (l *layout) freeNode() (int, bool) {
	down := 0
	for _, until := range l.node {
		if until > l.now {
			down++
		}
	}
	n := l.r.IntN(l.nodes)
	if l.node[n] > l.now || down >= (l.nodes-1)/2 && l.r.IntN(10) > 0 {
		return 0, false
	}
	return n, true
}

func (l *layout) onNode(kind string, d, after time.Duration) (fault, bool) {
	n, ok := l.freeNode()
	if !ok {
		return fault{}, false
	}
	l.node[n] = l.now + d + after
	return fault{Kind: kind, For: d, Nodes: []int{n}, Who: -1}, true
}

// quarantine is how long a node does not count after a restart.
func (l *layout) quarantine() time.Duration { return l.maxTTL + 1200*time.Millisecond }

func (l *layout) nodePause() (fault, bool) {
	return l.onNode("node paused", l.duration(50*time.Millisecond, 2*l.ttl), 0)
}

func (l *layout) nodeRestartEmpty() (fault, bool) {
	return l.onNode("node restarted empty", 0, l.quarantine())
}

func (l *layout) nodeDown() (fault, bool) {
	return l.onNode("node killed, and restarted later", l.duration(100*time.Millisecond, 2*l.ttl), l.quarantine())
}

func (l *layout) nodeRestart() (fault, bool) {
	f, ok := l.onNode("node restarted with its append-only file", 0, l.quarantine())
	if !ok || !durable(f.Nodes[0]) {
		return fault{}, false
	}
	return f, true
}

func (l *layout) nodeClockBack() (fault, bool) {
	f, ok := l.onNode("node clock set back", 0, l.ttl)
	f.Step = -l.duration(10*time.Millisecond, l.ttl)
	return f, ok
}

func (l *layout) nodeRate() (fault, bool) {
	n := l.r.IntN(l.nodes)
	return fault{Kind: "node clock rate set", Nodes: []int{n}, Who: -1, PPM: l.r.Int64N(fastest + 1)}, true
}

func (l *layout) freeClient() (int, bool) {
	c := l.r.IntN(l.clients)
	return c, l.client[c] <= l.now
}

func (l *layout) onClient(kind string, d time.Duration) (fault, bool) {
	c, ok := l.freeClient()
	if ok {
		l.client[c] = l.now + d
	}
	return fault{Kind: kind, For: d, Who: c}, ok
}

func (l *layout) clientPause() (fault, bool) {
	d := l.duration(20*time.Millisecond, l.ttl/2)
	if l.r.IntN(2) == 0 {
		d = l.duration(l.ttl, 3*l.ttl)
	}
	return l.onClient("client paused", d)
}

func (l *layout) clientKill() (fault, bool) {
	return l.onClient("client killed, and restarted later", l.duration(50*time.Millisecond, 2*time.Second))
}

func (l *layout) clientClock() (fault, bool) {
	f, ok := l.onClient("client wall clock set", 0)
	f.Step = l.duration(-l.maxSkew(), l.maxSkew())
	return f, ok
}

// onLinks makes links of a client suffer.
func (l *layout) onLinks(kind string, d time.Duration, client int, nodes []int, t toxic) (fault, bool) {
	for _, n := range nodes {
		if l.link[client][n] > l.now {
			return fault{}, false
		}
	}
	for _, n := range nodes {
		l.link[client][n] = l.now + d
	}
	return fault{Kind: kind, For: d, Who: client, Nodes: nodes, Toxic: &t}, true
}

func (l *layout) someNodes() []int { return l.r.Perm(l.nodes)[:1+l.r.IntN(l.nodes)] }

func (l *layout) linkHold() (fault, bool) {
	stream := []string{"both", "both", "upstream", "downstream"}[l.r.IntN(4)]
	return l.onLinks("links held ("+stream+")", l.duration(100*time.Millisecond, 2*l.ttl), l.r.IntN(l.clients), l.someNodes(),
		toxic{kind: "hold", stream: stream})
}

func (l *layout) linkSlow() (fault, bool) {
	latency := l.r.IntN(200)
	return l.onLinks("links slow", l.duration(500*time.Millisecond, 3*l.ttl), l.r.IntN(l.clients), l.someNodes(),
		toxic{kind: "latency", stream: []string{"both", "upstream", "downstream"}[l.r.IntN(3)],
			attributes: map[string]any{"latency": latency, "jitter": latency / 2}})
}

func (l *layout) linkReset() (fault, bool) {
	return l.onLinks("links reset", l.duration(10*time.Millisecond, 500*time.Millisecond), l.r.IntN(l.clients), l.someNodes(),
		toxic{kind: "reset_peer", stream: "downstream", attributes: map[string]any{"timeout": 0}})
}

func (l *layout) clientCutOff() (fault, bool) {
	all := make([]int, l.nodes)
	for i := range all {
		all[i] = i
	}
	return l.onLinks("client cut off from all nodes", l.duration(l.ttl/2, 3*l.ttl), l.r.IntN(l.clients), all,
		toxic{kind: "hold", stream: "both"})
}

func (l *layout) nodeCutOff() (fault, bool) {
	for c := range l.client {
		for n := range l.node {
			if l.link[c][n] > l.now {
				return fault{}, false
			}
		}
	}
	f, ok := l.onNode("node cut off from all clients", l.duration(200*time.Millisecond, 2*l.ttl), 0)
	if ok {
		for c := range l.client {
			l.link[c][f.Nodes[0]] = l.now + f.For
		}
		f.Toxic = &toxic{kind: "hold", stream: "both"}
	}
	return f, ok
}

// What follows is beyond the assumptions.

func (l *layout) majority() []int { return l.r.Perm(l.nodes)[:l.nodes/2+1] }

func (l *layout) majorityForward() (fault, bool) {
	return fault{Kind: "clocks of a majority set forward", Nodes: l.majority(), Who: -1, Step: l.duration(l.ttl, 3*l.ttl)}, true
}

func (l *layout) majorityForgets() (fault, bool) {
	return fault{Kind: "majority forgot everything", Nodes: l.majority(), Who: -1}, true
}

func (l *layout) clientSlow() (fault, bool) {
	f, ok := l.onClient("client clock 10 % slow", l.duration(2*l.ttl, 6*l.ttl))
	f.PPM = -100_000
	return f, ok
}

func (l *layout) clientFarOff() (fault, bool) {
	f, ok := l.onClient("client wall clock hours off", l.duration(2*l.ttl, 6*l.ttl))
	f.Step = l.duration(-3*time.Hour, 3*time.Hour)
	return f, ok
}
