package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// counts is what happened, in one world or in all of them.
type counts struct {
	Seeds     int
	Simulated time.Duration
	Commands  int // that nodes have run
	Ops       map[string]int
	Faults    map[string]int
}

func newCounts() counts { return counts{Ops: map[string]int{}, Faults: map[string]int{}} }

// leaseOps are the operations on leases among the operations, and how many calls of redlock's
// API the layers above make for each of theirs.
var leaseOps = map[string]int{
	"acquire": 1, "try": 1, "extend": 1, "save": 1, "inspect": 1, "release": 1, "break": 2,
	"sold": 2, "refused": 2, "term": 2, // acquire and release
	"tick": 3, // and save
}

func (c *counts) leaseOps() int {
	n := 0
	for op, calls := range leaseOps {
		n += c.Ops[op] * calls
	}
	return n
}

func (c *counts) add(other counts) {
	c.Seeds += other.Seeds
	c.Simulated += other.Simulated
	c.Commands += other.Commands
	for op, n := range other.Ops {
		c.Ops[op] += n
	}
	for fault, n := range other.Faults {
		c.Faults[fault] += n
	}
}

// report says what was done in this much real time.
func (c *counts) report(took time.Duration) string {
	ops := c.leaseOps()
	return fmt.Sprintf("%d seeds, %.1f simulated hours, %d lease operations, %d commands on nodes in %v\n"+
		"  each second: %.0f simulated seconds, %.0f lease operations, %.0f commands\n"+
		"  operations: %s\n"+
		"  faults: %s\n",
		c.Seeds, c.Simulated.Hours(), ops, c.Commands, took.Round(time.Millisecond),
		c.Simulated.Seconds()/took.Seconds(), float64(ops)/took.Seconds(), float64(c.Commands)/took.Seconds(),
		list(c.Ops), list(c.Faults))
}

func list(m map[string]int) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s %d", key, m[key]))
	}
	return strings.Join(parts, ", ")
}

// did counts an operation.
func (w *world) did(op string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts.Ops[op]++
}

// struck counts a fault.
func (w *world) struck(fault string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts.Faults[fault]++
}
