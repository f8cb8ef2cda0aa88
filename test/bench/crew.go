package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/quorate/quorate/test/rig"
)

// A crew is client processes that work at the same time.
type crew struct {
	members []*member
	mu      sync.Mutex
	news    chan struct{} // closed when a member tells something
}

// A member is a client process as the bench sees it.
type member struct {
	rig.Process
	config clientConfig
	log    string
	crew   *crew
	events []event // under the crew's mu
}

// hire starts client processes, and returns when all of them are ready. Whoever calls it defers
// dismiss, also where it fails.
func (g *ground) hire(ctx context.Context, configs ...clientConfig) (*crew, error) {
	c := &crew{news: make(chan struct{})}
	dir := g.bench.TempDir()
	for i, config := range configs {
		m := &member{config: config, log: filepath.Join(dir, fmt.Sprint(i)+".log"), crew: c}
		if err := m.start(); err != nil {
			return c, err
		}
		c.members = append(c.members, m)
	}
	return c, c.await(ctx, readyEvent, 1, patience)
}

// copies are n times the same configuration.
func copies(n int, config clientConfig) []clientConfig {
	all := make([]clientConfig, n)
	for i := range all {
		all[i] = config
	}
	return all
}

// start starts the process, also again when it was killed.
func (m *member) start() error {
	m.Process = rig.Process{}
	return m.Start(rig.Spec{Env: clientEnv, Config: m.config, Log: m.log}, func(line []byte) {
		var e event
		// The last line of a process that was killed may be cut off.
		if err := json.Unmarshal(line, &e); err == nil {
			m.crew.heard(m, e)
		}
	})
}

func (c *crew) heard(m *member, e event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m.events = append(m.events, e)
	close(c.news)
	c.news = make(chan struct{})
}

// told are a member's events of a kind.
func (m *member) told(kind string) []event {
	m.crew.mu.Lock()
	defer m.crew.mu.Unlock()
	var all []event
	for _, e := range m.events {
		if e.Kind == kind {
			all = append(all, e)
		}
	}
	return all
}

// await waits until all members have told n events of a kind.
func (c *crew) await(ctx context.Context, kind string, n int, most time.Duration) error {
	return c.until(ctx, fmt.Sprintf("all processes to be %s", kind), most, func() bool {
		for _, m := range c.members {
			if len(m.told(kind)) < n {
				return false
			}
		}
		return true
	})
}

// until waits for something that the events show.
func (c *crew) until(ctx context.Context, what string, most time.Duration, shown func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("waited %v for %s", most, what))
	defer cancel()
	for {
		c.mu.Lock()
		news := c.news
		c.mu.Unlock()
		if shown() {
			return nil
		}
		select {
		case <-news:
		case <-time.After(100 * time.Millisecond): // somebody may have died without a word
			if err := c.missing(); err != nil {
				return fmt.Errorf("while waiting for %s: %w", what, err)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// missing says which process has ended that should not have, and what it said.
func (c *crew) missing() error {
	for _, m := range c.members {
		select {
		case <-m.Exited():
			if len(m.told(doneEvent)) == 0 && m.Killed() == 0 {
				text, _ := os.ReadFile(m.log)
				return fmt.Errorf("a process has ended: %s", text[max(0, len(text)-1000):])
			}
		default:
		}
	}
	return nil
}

// work has all members work for a span of the machine's clock, and waits until they have told of it.
func (c *crew) work(ctx context.Context, warm, span time.Duration) (begin, end int64, err error) {
	// A moment ahead, so that all of them know before it begins.
	begin = rig.Stamp() + int64(20*time.Millisecond+warm)
	end = begin + int64(span)
	for _, m := range c.members {
		m.Tell(command{Op: "go", Begin: begin, End: end})
	}
	return begin, end, c.await(ctx, doneEvent, 1, warm+span+patience)
}

// dismiss ends all processes.
func (c *crew) dismiss() {
	for _, m := range c.members {
		m.Kill()
	}
}
