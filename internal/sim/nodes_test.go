package sim

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts by their SHA-1; nothing is secured by it.
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/redlock"
)

// nodes looks at the protocol from the side of the nodes: what they were sent, what they hold.
type nodes struct {
	w *world

	mu       sync.Mutex
	rnd      *rand.Rand
	kinds    map[string]string // of scripts, by SHA-1
	knows    map[script]bool
	released map[site]time.Time
	recent   []step // some of the last, to be sent again
	lock     string // key of the name whose steps are all recorded
	tape     []step
	setBack  time.Duration

	echo    []redis.UniversalClient
	replays sync.WaitGroup
}

// A site is an owner on a node.
type site struct {
	node  int
	owner string
}

// A script is one that a node knows, since its start.
type script struct {
	node int
	sha1 string
}

// A step is one script call as a node got it.
type step struct {
	node int
	args []string
}

func newNodes(w *world) *nodes {
	return &nodes{
		w: w, rnd: rand.New(rand.NewPCG(w.seed, 2)),
		kinds: map[string]string{}, knows: map[script]bool{}, released: map[site]time.Time{},
	}
}

// observe notes the steps of the protocol that a node is about to run.
func (n *nodes) observe(node int, args []string) {
	if len(args) < 6 || args[2] != "2" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	kind := ""
	switch args[0] {
	case "EVAL": // as when the node does not know the script; its first line names it
		kind, _, _ = strings.Cut(strings.TrimPrefix(args[1], "-- "), ":")
		sum := sha1Hex(args[1])
		n.kinds[sum], n.knows[script{node, sum}] = kind, true
	case "EVALSHA":
		if n.knows[script{node, args[1]}] {
			kind = n.kinds[args[1]]
		}
	}
	switch kind {
	case "":
		return
	case "release":
		at := site{node, args[5]}
		if _, before := n.released[at]; !before {
			n.released[at] = time.Now()
		}
	}
	if args[3] == n.lock {
		n.tape = append(n.tape, step{node, args})
	}
	if len(n.recent) < 64 {
		n.recent = append(n.recent, step{node, args})
	} else {
		n.recent[n.rnd.IntN(len(n.recent))] = step{node, args}
	}
}

func sha1Hex(s string) string {
	sum := sha1.Sum([]byte(s)) //nolint:gosec // see the import
	return hex.EncodeToString(sum[:])
}

// restarted takes note that a node has lost its scripts.
func (n *nodes) restarted(node int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for of := range n.knows {
		if of.node == node {
			delete(n.knows, of)
		}
	}
}

// forgot takes note that a node has come back empty: what it has released it may hold again.
func (n *nodes) forgot(node int) {
	n.restarted(node)
	n.mu.Lock()
	defer n.mu.Unlock()
	for at := range n.released {
		if at.node == node {
			delete(n.released, at)
		}
	}
}

// wentBack takes note that a node's clock was set back, so that its keys live longer.
func (n *nodes) wentBack(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.setBack += d
}

// replay sends some recent step to its node once more, a while later.
func (n *nodes) replay(rnd *rand.Rand) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.recent) == 0 {
		return
	}
	again, after := n.recent[rnd.IntN(len(n.recent))], about(rnd, 3*time.Second)
	n.replays.Go(func() {
		rest(n.w.t.Context(), after)
		n.send(again)
	})
}

// send sends a step to its node once more.
func (n *nodes) send(again step) {
	n.mu.Lock()
	if n.echo == nil {
		n.echo = n.w.fleet.Host("echo").Clients()
	}
	client := n.echo[again.node]
	n.mu.Unlock()
	args := make([]any, len(again.args))
	for i, a := range again.args {
		args[i] = a
	}
	_ = client.Do(n.w.t.Context(), args...).Err() // the node may be down, or not know the script
}

// record begins to record all steps for a name.
func (n *nodes) record(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lock, n.tape = redlock.DefaultKeyPrefix+name, nil
}

// recorded returns the steps, and ends the recording.
func (n *nodes) recorded() []step {
	n.mu.Lock()
	defer n.mu.Unlock()
	tape := n.tape
	n.lock, n.tape = "", nil
	return tape
}

// wait waits for the replays that are still to come.
func (n *nodes) wait() { n.replays.Wait() }

// audit looks at one name on one node: a lock there runs out, and its owner has not been released
// there before. A release counts once time has moved on: by then it has been carried out.
func (n *nodes) audit() {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.w
	node, name := n.rnd.IntN(w.fleet.Len()), w.names[n.rnd.IntN(len(w.names))]
	key := redlock.DefaultKeyPrefix + name
	owner, held := w.fleet.Get(node, key)
	if !held {
		return
	}
	if ttl := w.fleet.TTL(node, key); ttl <= 0 || ttl > redlock.DefaultTTL+n.setBack {
		w.violated("node %d holds %s of %s for another %v", node, name, owner, ttl)
	}
	if w.breaks.concern(name, owner) {
		return // it is not the owner who released it
	}
	if at, ok := n.released[site{node, owner}]; ok && time.Now().After(at) {
		w.violated("node %d holds %s of %s, which it released at %v", node, name, owner, at.Sub(w.begin))
	}
}
