package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/dbserver"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/test/redisserver"
	"github.com/quorate/quorate/test/rig"
)

// fleetSize is the largest that a row needs. Others take the first few: a server that nobody talks to
// costs nothing.
const fleetSize = 7

// ground is what a run stands on: the servers, which all rows share so that they are waited for once.
type ground struct {
	sizes
	bench   *rig.Bench
	fleet   redisserver.Fleet
	store   *redisserver.Server // what guarded updates change
	admins  []*redis.Client     // of the fleet, for what is asked beside the load
	started time.Time
	say     func(string)

	postgresOnce sync.Once
	postgres     *dbserver.Server
	postgresErr  error
}

// newGround starts the servers. Whoever calls it defers leave, also where it fails.
func newGround(s sizes, say func(string)) (*ground, error) {
	redis.SetLogger(silent{})
	slog.SetDefault(slog.New(slog.DiscardHandler)) // as for times.options
	bench, err := rig.NewBench("quorate-bench-", say)
	return &ground{sizes: s, bench: bench, say: say}, err
}

// set starts the servers. Where one does not start it panics, as leave knows.
func (g *ground) set() {
	g.fleet = redisserver.StartFleet(g.bench, fleetSize)
	g.store = redisserver.Start(g.bench)
	g.started = time.Now()
	for _, s := range g.fleet {
		g.admins = append(g.admins, s.Client())
	}
}

// leave ends all that was started. The error is that of the run, or of the bench.
func (g *ground) leave(err *error, unwound any) {
	if failed := rig.Recover(unwound); failed != nil {
		*err = failed
	}
	*err = errors.Join(*err, g.bench.Err())
	if g.postgres != nil {
		g.postgres.Stop()
	}
	if *err != nil {
		g.bench.Say("what the servers and the processes said is in " + g.bench.Dir)
	}
	g.bench.Close(*err != nil)
}

// addrs are the first n nodes.
func (g *ground) addrs(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = g.fleet[i].Addr()
	}
	return all
}

// settle waits until the nodes have been up for a maximum TTL, and so count.
func (g *ground) settle(ctx context.Context, maxTTL time.Duration) error {
	if maxTTL == 0 {
		maxTTL = redlock.DefaultMaxTTL
	}
	// A node tells its age in whole seconds.
	if left := time.Until(g.started.Add(maxTTL + 2*time.Second)); left > 0 && !pause(ctx, left) {
		return context.Cause(ctx)
	}
	return nil
}

// clear forgets what the measurement before has left, on the servers and in this process.
func (g *ground) clear(ctx context.Context) error {
	for _, admin := range g.admins {
		if err := admin.FlushAll(ctx).Err(); err != nil {
			return fmt.Errorf("empty a node: %w", err)
		}
	}
	runtime.GC()
	return nil
}

// database is a PostgreSQL, started when it is first asked for.
func (g *ground) database() (*dbserver.Server, error) {
	g.postgresOnce.Do(func() { g.postgres, g.postgresErr = dbserver.StartPostgres() })
	return g.postgres, g.postgresErr
}

// A sample is what one measurement of a series gave, by name.
type sample map[string]float64

// A series is measured again in each round.
type series struct {
	name    string
	measure func(ctx context.Context) (sample, error)
}

// inTurn measures all series, one after the other, and that several times, so that what happens to
// the machine meanwhile happens to all of them. It gives the medians of the rounds.
func (g *ground) inTurn(ctx context.Context, all ...series) (map[string]sample, error) {
	rounds := map[string]map[string][]float64{}
	for range g.rounds {
		for _, s := range all {
			if err := g.clear(ctx); err != nil {
				return nil, err
			}
			got, err := s.measure(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			if rounds[s.name] == nil {
				rounds[s.name] = map[string][]float64{}
			}
			for what, value := range got {
				rounds[s.name][what] = append(rounds[s.name][what], value)
			}
		}
	}
	medians := map[string]sample{}
	for name, whats := range rounds {
		medians[name] = sample{}
		for what, values := range whats {
			medians[name][what] = median(values)
		}
	}
	return medians, nil
}

// under measures a contender under a load. What is measured of it, tell says.
func (g *ground) under(name string, lib library, nodes []string, l load, tell func(*outcome) sample) series {
	return series{name, func(ctx context.Context) (sample, error) {
		c, err := open(lib, nodes, g.times)
		if err != nil {
			return nil, err
		}
		defer c.close()
		l.warm, l.span = g.warm, g.span
		o, err := l.run(ctx, c)
		if err != nil {
			return nil, err
		}
		return tell(o), nil
	}}
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
