package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/test/rig"
)

// finish heals everything, sees that the fleet recovers, measures, has the clients end, and looks
// at what is left.
func (h *harness) finish(ctx context.Context) (*report, error) {
	healed := rig.Stamp()
	for _, s := range h.clients {
		s.process.Tell(command{Op: "careful"}) // so that what is left at the end was not left on purpose
	}
	// What was forgotten before, on a node whose clock was set back since.
	runOut := healed + int64(3*h.ttl)
	h.log("all faults are over; waiting until every name can be acquired again")
	err := h.await(ctx, "every name to be acquired again", 90*time.Second, func() bool { return rig.Stamp() > runOut && h.history.recovered(healed) })
	stuck := ""
	if err != nil {
		stuck = err.Error()
	}
	h.measured = rig.Stamp()
	hung := h.cycle(ctx)

	var all sync.WaitGroup
	late := make([]bool, len(h.clients))
	for i, s := range h.clients {
		all.Go(func() { late[i] = !s.process.End(time.Minute) })
	}
	all.Wait()
	left, err := h.leftBehind(ctx)
	if err != nil {
		return nil, err
	}
	ledgers, err := h.ledgers(ctx)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	failed := errors.Join(append(h.failed, h.bench.Err())...)
	h.mu.Unlock()
	if failed != nil {
		return nil, fmt.Errorf("the harness itself failed: %w", failed)
	}
	return h.report(verdictInput{stuck: stuck, late: late, left: left, ledgers: ledgers, hung: hung}), nil
}

// cycle hangs a node and has a client take and release names that nobody else wants.
func (h *harness) cycle(ctx context.Context) []time.Duration {
	if h.cycles == 0 {
		return nil
	}
	h.fleet[len(h.fleet)-1].Pause()
	defer h.fleet[len(h.fleet)-1].Resume()
	h.clients[0].process.Tell(command{Op: "cycles", N: h.cycles})
	_ = h.await(ctx, "the cycles", 2*time.Minute, func() bool { return len(h.history.cycleTimes()) >= h.cycles })
	return h.history.cycleTimes()
}

// leftBehind are the locks that processes left on the nodes which had ended of their own accord.
func (h *harness) leftBehind(ctx context.Context) ([]string, error) {
	var left []string
	for n, node := range h.fleet {
		client := node.Client()
		for _, key := range node.Keys() {
			owner, err := client.Get(ctx, key).Result()
			if err != nil {
				continue // gone by now
			}
			if h.lib == "quorate" {
				if !strings.HasPrefix(key, redlock.DefaultKeyPrefix) || !h.endedWell(owner) {
					continue
				}
			}
			left = append(left, fmt.Sprintf("%s on node %d", key, n))
		}
	}
	return left, nil
}

// endedWell tells whether the owner is a process that was not killed.
func (h *harness) endedWell(owner string) bool {
	return slices.ContainsFunc(h.clients, func(s *slot) bool {
		return strings.HasPrefix(owner, s.process.config.identity()+"/")
	})
}

func (h *harness) ledgers(ctx context.Context) (map[string][]string, error) {
	all := map[string][]string{}
	for _, r := range resources {
		entries, err := h.store.LRange(ctx, ledgerKey(r), 0, -1).Result()
		if err != nil {
			return nil, fmt.Errorf("read the ledger of %s: %w", r, err)
		}
		all[r] = entries
	}
	return all, nil
}
