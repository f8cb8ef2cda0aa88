package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/test/redisserver"
	"github.com/quorate/quorate/test/rig"
)

const (
	nodes    = 5
	replicas = 3
)

// stage is what a run stands on: the servers, and the places of the replicas.
type stage struct {
	bench    *rig.Bench
	fleet    redisserver.Fleet
	resource *redisserver.Server
	store    *redis.Client // of the resource
	journal  *journal
	path     string // of the file for the journal, or ""
}

// newStage makes a stage on which nothing stands yet. Whoever calls it defers strike.
func newStage(log func(string), path string) (*stage, error) {
	redis.SetLogger(silent{})
	bench, err := rig.NewBench("quorate-fleet-", log)
	return &stage{bench: bench, journal: newJournal(), path: path}, err
}

// set starts the servers. Where one does not start it panics, as strike knows.
func (s *stage) set() {
	s.fleet = redisserver.StartFleet(s.bench, nodes)
	s.resource = redisserver.Start(s.bench)
	s.store = s.resource.Client()
}

// strike ends all that was started. The error is that of the run, or of the bench.
func (s *stage) strike(err *error, unwound any) {
	if failed := rig.Recover(unwound); failed != nil {
		*err = failed
	}
	*err = errors.Join(*err, s.bench.Err(), s.write())
	if *err != nil {
		s.bench.Say("what the servers and the clients said is in " + s.bench.Dir)
	}
	s.bench.Close(*err != nil)
}

// write writes the journal to its file, if there is one.
func (s *stage) write() error {
	if s.path == "" {
		return nil
	}
	file, err := os.Create(s.path)
	if err != nil {
		return err
	}
	return errors.Join(s.journal.print(file), file.Close())
}

// place is that of a replica, in which processes follow one another.
type place struct {
	config  clientConfig
	links   redisserver.Links
	process *process
}

// process is a client process as the harness sees it.
type process struct {
	rig.Process
	place  *place
	config clientConfig
}

// place makes room for a replica, with links of its own to the nodes.
func (s *stage) place(config clientConfig) *place {
	p := &place{config: config, links: s.fleet.Links()}
	for _, l := range p.links {
		p.config.Nodes = append(p.config.Nodes, l.Addr())
	}
	p.config.Resource = s.resource.Addr()
	s.bench.Cleanup(func() {
		if p.process != nil {
			p.process.Kill()
		}
	})
	return p
}

// launch starts the process of a place, or the next one.
func (s *stage) launch(p *place) error {
	if p.process != nil {
		p.config.Start++
	}
	next := &process{place: p, config: p.config}
	spec := rig.Spec{Env: clientEnv, Config: p.config, Log: filepath.Join(s.bench.Dir, p.config.identity()+".log")}
	err := next.Start(spec, func(line []byte) {
		var e event
		// The last line of a process that was killed may be cut off.
		if err := json.Unmarshal(line, &e); err == nil {
			s.journal.add(next, e)
		}
	})
	if err == nil {
		p.process = next
	}
	return err
}

// await waits for something that the journal shows.
func (s *stage) await(ctx context.Context, what string, patience time.Duration, shown func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("waited %v for %s; %s", patience, what, s.complaints()))
	defer cancel()
	for {
		news := s.journal.news()
		if shown() {
			return nil
		}
		select {
		case <-news:
		case <-time.After(20 * time.Millisecond): // something may be shown by the time alone
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// complaints are what the clients wrote to their standard errors last.
func (s *stage) complaints() string {
	var all strings.Builder
	files, _ := filepath.Glob(filepath.Join(s.bench.Dir, "*.log"))
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil {
			all.WriteString(filepath.Base(file) + ": ")
			all.Write(text[max(0, len(text)-500):])
		}
	}
	return all.String()
}
