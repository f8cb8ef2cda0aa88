package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/test/rig"
)

// rage carries the schedule out.
func (h *harness) rage(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, h.duration)
	defer cancel()
	if h.until != nil {
		go func() {
			for pause(ctx, 100*time.Millisecond) {
				if h.until(h) {
					cancel()
				}
			}
		}()
	}
	begun := time.Now()
	var all sync.WaitGroup
	for _, f := range schedule(h.seed, h.setup()) {
		if !pause(ctx, time.Until(begun.Add(f.At))) {
			break
		}
		all.Go(func() {
			if err := h.carryOut(ctx, f); err != nil {
				h.fail(fmt.Errorf("%v: %w", f, err))
			}
		})
	}
	<-ctx.Done()
	all.Wait()
}

// carryOut lets a fault begin, last and end. Where ctx ends, it ends early.
func (h *harness) carryOut(ctx context.Context, f fault) error {
	a := &activity{fault: f, window: window{begin: rig.Stamp()}}
	h.mu.Lock()
	h.active = append(h.active, a)
	h.mu.Unlock()
	defer func() {
		end := rig.Stamp()
		h.mu.Lock()
		a.end = end
		h.mu.Unlock()
	}()

	if f.Toxic != nil {
		return h.onLinks(ctx, f)
	}
	if f.Who >= 0 {
		return h.onClient(ctx, f)
	}
	for _, n := range f.Nodes {
		h.onNode(ctx, f, n)
	}
	return nil
}

func (h *harness) onNode(ctx context.Context, f fault, n int) {
	node := h.fleet[n]
	if strings.HasPrefix(f.Kind, "node ") {
		// The schedule has one at a time, but on a busy machine a restart may take its time.
		h.busy[n].Lock()
		defer h.busy[n].Unlock()
	}
	switch f.Kind {
	case "node paused":
		node.Pause()
		pause(ctx, f.For)
		node.Resume()
	case "node restarted empty":
		node.RestartEmpty()
	case "node restarted with its append-only file":
		node.Restart()
	case "node killed, and restarted later":
		node.Kill()
		pause(ctx, f.For)
		node.Restart()
	case "majority forgot everything":
		client := redis.NewClient(&redis.Options{Addr: node.Addr()})
		defer func() { _ = client.Close() }()
		_ = client.FlushAll(ctx).Err() // a node that is down forgets all the same
	default:
		if f.Step != 0 {
			node.StepClock(f.Step)
		} else {
			node.SetClockRate(f.PPM)
		}
	}
}

func (h *harness) onClient(ctx context.Context, f fault) error {
	s := h.clients[f.Who]
	s.mu.Lock()
	defer s.mu.Unlock()
	switch f.Kind {
	case "client paused":
		s.process.Stop()
		pause(ctx, f.For)
		s.process.Cont()
		return nil
	case "client killed, and restarted later":
		s.process.Kill()
		pause(ctx, f.For)
		return h.launch(f.Who)
	case "client wall clock set":
		s.skew = f.Step
		s.process.Tell(command{Op: "clock", Skew: int64(s.skew), PPM: s.ppm})
		return nil
	}
	skew, ppm := s.skew+f.Step, s.ppm
	if f.PPM != 0 {
		ppm = f.PPM
	}
	s.process.Tell(command{Op: "clock", Skew: int64(skew), PPM: ppm})
	pause(ctx, f.For)
	s.process.Tell(command{Op: "clock", Skew: int64(s.skew), PPM: s.ppm})
	return nil
}

func (h *harness) onLinks(ctx context.Context, f fault) error {
	var heal []func()
	defer func() {
		for _, h := range heal {
			h()
		}
	}()
	for c, links := range h.links {
		if f.Who >= 0 && f.Who != c {
			continue
		}
		for _, n := range f.Nodes {
			undo, err := links[n].suffer(*f.Toxic)
			if err != nil {
				return err
			}
			heal = append(heal, undo)
		}
	}
	pause(ctx, f.For)
	return nil
}
