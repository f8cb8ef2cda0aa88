package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/test/redisserver"
	"github.com/quorate/quorate/test/rig"
)

// config is what one run is asked for.
type config struct {
	lib      string
	loads    []string
	profile  profile
	seed     uint64
	duration time.Duration
	nodes    int
	clients  int
	ttl      time.Duration
	maxTTL   time.Duration
	gap      time.Duration
	ungated  bool
	cycles   int // to measure at the end, with one node hung
	log      func(string)
	until    func(*harness) bool // ends the run early
	only     []string            // kinds of faults; nil: all
	discard  bool                // the logs, also where something was violated
}

func (c config) setup() setup {
	return setup{
		profile: c.profile, nodes: c.nodes, clients: c.clients, ttl: c.ttl, maxTTL: c.maxTTL,
		duration: c.duration, gap: c.gap, clocks: redisserver.CanSetClocks, only: c.only,
	}
}

// harness is one run.
type harness struct {
	config
	bench    *rig.Bench
	fleet    redisserver.Fleet
	resource *redisserver.Server
	store    *redis.Client // of the resource
	links    [][]*link     // of a client to each node
	busy     []sync.Mutex  // of each node: held while something is done to its process
	history  *history
	begun    int64
	measured int64 // the end of what outages are looked for in

	mu      sync.Mutex
	clients []*slot
	active  []*activity
	failed  []error
}

// slot is the place of a client, in which processes follow one another.
type slot struct {
	mu      sync.Mutex // held while something is done to the process
	process *process
	skew    time.Duration
	ppm     int64
}

// activity is a fault that was carried out.
type activity struct {
	fault
	window
}

// soak carries a run out and says what there was.
func soak(ctx context.Context, c config) (report *report, err error) {
	redis.SetLogger(silent{}) // it complains of every server that is down
	b, err := rig.NewBench("quorate-soak-", c.log)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil && ctx.Err() != nil { // it was interrupted, and so were the servers
			b.Say, err = func(string) {}, context.Cause(ctx)
			c.discard = true
		}
		keep := !c.discard && (err != nil || report != nil && report.failed())
		if keep {
			c.log("what the servers and the clients said is in " + b.Dir)
		}
		b.Close(keep)
	}()
	defer func() {
		if failed := rig.Recover(recover()); failed != nil {
			err = failed
		}
	}()
	h := &harness{config: c, bench: b, history: newHistory(), busy: make([]sync.Mutex, c.nodes)}
	if err := h.start(); err != nil {
		return nil, err
	}
	if err := h.await(ctx, "every client to work", time.Minute, func() bool { return h.history.served(h.config.clients) }); err != nil {
		return nil, err
	}
	h.rage(ctx)
	return h.finish(ctx)
}

func (h *harness) start() error {
	var durableOpts, plain []redisserver.Option
	if redisserver.CanSetClocks {
		plain = append(plain, redisserver.WithOwnClock())
	}
	durableOpts = append(durableOpts, plain...)
	durableOpts = append(durableOpts, redisserver.WithConfig("appendonly", "yes"), redisserver.WithConfig("appendfsync", "everysec"))
	for i := range h.nodes {
		if durable(i) {
			h.fleet = append(h.fleet, redisserver.Start(h.bench, durableOpts...))
		} else {
			h.fleet = append(h.fleet, redisserver.Start(h.bench, plain...))
		}
	}
	h.resource = redisserver.Start(h.bench)
	h.store = h.resource.Client()
	for _, r := range resources {
		if err := h.store.Set(context.Background(), stockKey(r), stock, 0).Err(); err != nil {
			return fmt.Errorf("lay the stock in: %w", err)
		}
	}
	h.begun = rig.Stamp()
	for c := range h.config.clients {
		var links []*link
		for n, node := range h.fleet {
			l, err := newLink(fmt.Sprintf("client-%d-node-%d", c, n), node.Addr())
			if err != nil {
				return err
			}
			h.bench.Cleanup(l.close)
			links = append(links, l)
		}
		h.links = append(h.links, links)
		s := &slot{ppm: int64(c%2) * fastest} // every other one is fast, all its life
		h.clients = append(h.clients, s)
		if err := h.launch(c); err != nil {
			return err
		}
	}
	h.bench.Cleanup(func() {
		for _, s := range h.clients {
			s.process.Kill()
		}
	})
	return nil
}

// launch starts the process of a slot, or the next one.
func (h *harness) launch(c int) error {
	s := h.clients[c]
	config := clientConfig{
		Client: c, Resource: h.resource.Addr(), Lib: h.lib, Ungated: h.ungated, Loads: h.loads,
		TTL: h.ttl, MaxTTL: h.maxTTL, Seed: h.seed, Skew: s.skew, PPM: s.ppm,
	}
	if s.process != nil {
		config.Start = s.process.config.Start + 1
	}
	for _, l := range h.links[c] {
		config.Nodes = append(config.Nodes, l.addr())
	}
	var p *process
	ready := make(chan struct{})
	p, err := startProcess(config, h.bench.Dir, func(e event) {
		<-ready
		h.history.add(p, e)
	})
	if err != nil {
		return err
	}
	h.history.join(p)
	close(ready)
	s.process = p
	return nil
}

func (h *harness) await(ctx context.Context, what string, patience time.Duration, condition func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !condition() {
		if !pause(ctx, 20*time.Millisecond) {
			return fmt.Errorf("waited %v for %s; %s", patience, what, h.complaints())
		}
	}
	return nil
}

// complaints are what the clients wrote to their standard errors.
func (h *harness) complaints() string {
	var all strings.Builder
	for _, s := range h.clients {
		if text, err := os.ReadFile(h.bench.Dir + "/" + s.process.config.identity() + ".log"); err == nil {
			all.Write(text[:min(len(text), 2000)])
		}
	}
	return all.String()
}

func (h *harness) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed = append(h.failed, err)
}
